package bifocal.cli.replay;

import bifocal.cli.backend.RunDevice;
import bifocal.cli.replay.ContinuousBatching.Scheduled;
import bifocal.cli.replay.CounterTensors.Kind;
import bifocal.core.backend.KvInput;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerGroup;
import bifocal.core.tensor.TensorView;
import bifocal.reference.KeyValues;
import io.vavr.collection.Seq;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * One layer group's tensors of a step, in host memory that is used again in the next step. All
 * backends that are compared read the same ones.
 */
final class GroupInputs {
  private static final long ALIGNMENT = 64;

  private final AttentionLayerSpec.Dense layer;
  private final int firstLayer;
  private final CounterTensors queries;
  private final CounterTensors keyValues;
  private final TensorView q;
  private final TensorView k;
  private final TensorView v;
  private final TensorView out;

  /**
   * @param firstLayer number of the group's first layer among all layers
   * @param arena owns the memory
   */
  GroupInputs(
      LayerGroup group,
      AttentionLayerSpec.Dense layer,
      int firstLayer,
      int tokens,
      long seed,
      Arena arena) {
    this.layer = layer;
    this.firstLayer = firstLayer;
    int longest = Math.max(layer.headSize(), layer.headSizeV());
    double unitLogit = 1 / (Math.abs(layer.scale()) * Math.sqrt(layer.headSize()));
    this.queries = new CounterTensors(seed, layer.dtype(), unitLogit, longest);
    this.keyValues = new CounterTensors(seed, layer.dtype(), 1, longest);
    this.q = tensor(arena, tokens, layer.numHeads(), layer.headSize());
    this.k = tensor(arena, tokens, layer.numKvHeads(), layer.headSize());
    this.v = tensor(arena, tokens, layer.numKvHeads(), layer.headSizeV());
    this.out = tensor(arena, tokens, layer.numHeads(), layer.headSizeV());
  }

  private TensorView tensor(Arena arena, int tokens, int heads, int headSize) {
    long bytes = Math.multiplyExact((long) tokens * heads, (long) headSize * layer.dtype().bytes());
    MemorySegment memory = arena.allocate(bytes, ALIGNMENT);
    return TensorView.ofHost(memory, layer.dtype(), tokens, heads, headSize);
  }

  /** Fills queries, keys and values of one layer for a step's tokens. */
  void fill(int layerInGroup, Seq<Scheduled> step) {
    int row = 0;
    for (Scheduled scheduled : step) {
      for (int position = scheduled.first(); position < scheduled.seqLen(); position++) {
        int request = scheduled.request().index();
        fill(queries, Kind.QUERY, request, layerInGroup, position, q, row);
        fill(keyValues, Kind.KEY, request, layerInGroup, position, k, row);
        fill(keyValues, Kind.VALUE, request, layerInGroup, position, v, row);
        row++;
      }
    }
  }

  private void fill(
      CounterTensors numbers,
      Kind kind,
      int request,
      int layerInGroup,
      int position,
      TensorView tensor,
      int row) {
    int heads = (int) tensor.size(1);
    int length = (int) tensor.size(2);
    long headBytes = (long) length * layer.dtype().bytes();
    for (int head = 0; head < heads; head++) {
      numbers.write(
          kind,
          request,
          firstLayer + layerInGroup,
          position,
          head,
          length,
          tensor.data(),
          ((long) row * heads + head) * headBytes);
    }
  }

  AttentionLayerSpec.Dense layer() {
    return layer;
  }

  /** The tensors where a device's kernels read and write them; on the host these tensors. */
  OnDevice onDevice(RunDevice device) {
    return new OnDevice(
        this,
        device.twin("queries", q),
        device.twin("keys", k),
        device.twin("values", v),
        device.twin("output", out));
  }

  /** Twins of a group's tensors on a device. */
  record OnDevice(GroupInputs host, TensorView q, TensorView k, TensorView v, TensorView out) {
    /** Copies the filled rows. */
    void upload(RunDevice device, int tokens) {
      device.upload(host.q.rows(0, tokens), q);
      device.upload(host.k.rows(0, tokens), k);
      device.upload(host.v.rows(0, tokens), v);
    }

    TensorView queries(int tokens) {
      return q.rows(0, tokens);
    }

    KvInput keyValues(int tokens) {
      return new KvInput.Dense(k.rows(0, tokens), v.rows(0, tokens));
    }

    TensorView output(int tokens) {
      return out.rows(0, tokens);
    }
  }

  TensorView queries(int tokens) {
    return q.rows(0, tokens);
  }

  KvInput keyValues(int tokens) {
    return new KvInput.Dense(k.rows(0, tokens), v.rows(0, tokens));
  }

  TensorView output(int tokens) {
    return out.rows(0, tokens);
  }

  /** The same keys and values for the reference, which shares nothing with the cache. */
  KeyValues reference(int layerInGroup, Seq<Scheduled> step) {
    int number = firstLayer + layerInGroup;
    return new KeyValues() {
      @Override
      public void readKey(int request, int position, int kvHead, float[] key) {
        keyValues.read(
            Kind.KEY,
            step.get(request).request().index(),
            number,
            position,
            kvHead,
            key.length,
            key);
      }

      @Override
      public void readValue(int request, int position, int kvHead, float[] value) {
        keyValues.read(
            Kind.VALUE,
            step.get(request).request().index(),
            number,
            position,
            kvHead,
            value.length,
            value);
      }
    };
  }
}
