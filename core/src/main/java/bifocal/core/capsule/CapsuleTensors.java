package bifocal.core.capsule;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheView;
import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.NarrowFloats;
import bifocal.core.tensor.TensorView;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The tensors of a capsule, gathered from where the step had them.
 *
 * @param arena owns the copies
 */
record CapsuleTensors(StepCapsule capsule, Arena arena) {
  private static final long ALIGNMENT = 64;

  /** Lengths and images. */
  Map<String, TensorView> batch() {
    CommonAttentionMetadata batch = capsule.batch();
    Seq<Integer> requests = capsule.requests();
    Map<String, TensorView> tensors =
        LinkedHashMap.of(
            "query_lens", ints(requests.map(batch::queryLen), requests.size()),
            "seq_lens", ints(requests.map(batch::seqLen), requests.size()));
    Seq<Integer> images =
        Vector.range(0, requests.size()).flatMap(place -> images(place, requests.get(place)));
    return images.isEmpty() ? tensors : tensors.put("images", ints(images, images.size() / 3, 3));
  }

  private Seq<Integer> images(int place, int request) {
    var images = capsule.batch().images();
    return Vector.range(0, images.count(request))
        .flatMap(i -> Vector.of(place, images.first(request, i), images.last(request, i)));
  }

  /** These, and queries, keys, values and the layer's own weights. */
  Map<String, TensorView> all(TensorView q, KvCacheView cache, LayerParameters parameters) {
    Dense layer = capsule.layer();
    KvCacheView.TokenAccess tokens = cache.tokens(cache.spec().layout());
    Map<String, TensorView> tensors =
        batch()
            .put("q", queries(q))
            .put("k", cached(cache, layer.headSize(), tokens::readKey))
            .put("v", cached(cache, layer.headSizeV(), tokens::readValue));
    for (TensorView sinks : parameters.sinks()) {
      tensors = tensors.put("sinks", sinks);
    }
    for (TensorView slopes : parameters.alibiSlopes()) {
      tensors = tensors.put("alibi_slopes", slopes);
    }
    return tensors;
  }

  private interface Reader {
    void read(long slot, int head, float[] into);
  }

  private TensorView queries(TensorView q) {
    Dense layer = capsule.layer();
    CommonAttentionMetadata batch = capsule.batch();
    q.require("q", layer.dtype(), Device.HOST, -1, layer.numHeads(), layer.headSize());
    if (q.size(0) < batch.tokens()) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "rows of q", q.size(0), "at least " + batch.tokens());
    }
    long rows = capsule.requests().map(batch::queryLen).sum().longValue();
    TensorView copy = floats(rows, layer.numHeads(), layer.headSize());
    long bytes = layer.dtype().bytes();
    long to = 0;
    for (int request : capsule.requests()) {
      for (int i = 0; i < batch.queryLen(request); i++) {
        for (int head = 0; head < layer.numHeads(); head++) {
          long row = (batch.queryStart(request) + i) * q.stride(0) + head * q.stride(1);
          for (int d = 0; d < layer.headSize(); d++) {
            float number = NarrowFloats.load(q.data(), (row + d * q.stride(2)) * bytes, q.dtype());
            NarrowFloats.store(copy.data(), to, q.dtype(), number);
            to += bytes;
          }
        }
      }
    }
    return copy;
  }

  /** Every key or value of the requests' sequences, from the cache. */
  private TensorView cached(KvCacheView cache, int headSize, Reader reader) {
    Dense layer = capsule.layer();
    CommonAttentionMetadata batch = capsule.batch();
    long keys = capsule.requests().map(batch::seqLen).sum().longValue();
    TensorView copy = floats(keys, layer.numKvHeads(), headSize);
    float[] numbers = new float[headSize];
    long to = 0;
    for (int request : capsule.requests()) {
      for (int position = 0; position < batch.seqLen(request); position++) {
        long slot = slot(cache.spec().blockSize(), request, position);
        for (int head = 0; head < layer.numKvHeads(); head++) {
          reader.read(slot, head, numbers);
          for (float number : numbers) {
            NarrowFloats.store(copy.data(), to, layer.dtype(), number);
            to += layer.dtype().bytes();
          }
        }
      }
    }
    return copy;
  }

  private long slot(int blockSize, int request, int position) {
    CommonAttentionMetadata batch = capsule.batch();
    TensorView table = batch.blockTable();
    if (!table.device().hostReadable()) {
      throw BifocalException.of(
          ErrorCode.DEVICE_MISMATCH, "block table", table.device(), Device.HOST);
    }
    long element =
        batch.blockTableRow(request) * table.stride(0) + position / blockSize * table.stride(1);
    int block = table.data().get(ValueLayout.JAVA_INT_UNALIGNED, element * Integer.BYTES);
    return (long) block * blockSize + position % blockSize;
  }

  private TensorView floats(long rows, int heads, int headSize) {
    long elements = Math.multiplyExact(Math.multiplyExact(rows, heads), (long) headSize);
    DType type = capsule.layer().dtype();
    MemorySegment memory =
        arena.allocate(Math.multiplyExact(elements, (long) type.bytes()), ALIGNMENT);
    return TensorView.ofHost(memory, type, rows, heads, headSize);
  }

  private TensorView ints(Seq<Integer> numbers, long... shape) {
    MemorySegment memory = arena.allocate((long) numbers.size() * Integer.BYTES, ALIGNMENT);
    for (int i = 0; i < numbers.size(); i++) {
      memory.setAtIndex(ValueLayout.JAVA_INT, i, numbers.get(i));
    }
    return TensorView.ofHost(memory, DType.INT32, shape);
  }
}
