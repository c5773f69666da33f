package bifocal.conformance;

import bifocal.conformance.BatchPlan.Request;
import bifocal.conformance.ValueSource.Kind;
import bifocal.conformance.memory.TestDevice;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.reference.HostTensor;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Makes the tensors of one layer on a device, out of a source of numbers. */
final class Tensors {
  static final int POISON = 0xFF;

  private final TestDevice device;
  private final ValueSource values;
  private final Dense layer;

  Tensors(TestDevice device, ValueSource values, Dense layer) {
    this.device = device;
    this.values = values;
    this.layer = layer;
  }

  /** One number as the layer sees it: rounded to its type. */
  float number(Kind kind, int sequence, int position, int head, int d) {
    return HostTensor.round(values.at(kind, sequence, position, head, d), layer.dtype());
  }

  /** Keys or values of consecutive tokens: {@code [to - from, heads, size]}. */
  TensorView tokens(Kind kind, int sequence, int from, int to) {
    HostTensor host = heap(layer.dtype(), to - from, heads(kind), size(kind));
    for (int i = 0; i < to - from; i++) {
      put(host, i, kind, sequence, from + i);
    }
    return upload(host.view());
  }

  /** Queries by row of q; rows of no request hold NaN. */
  TensorView queries(HostBatch batch) {
    return rows(Kind.QUERY, batch);
  }

  /** Numbers of the batch's query tokens by row; rows of no request hold NaN. */
  TensorView rows(Kind kind, HostBatch batch) {
    return upload(hostRows(kind, batch));
  }

  /** The same, left on the host. */
  TensorView hostRows(Kind kind, HostBatch batch) {
    HostTensor host = heap(layer.dtype(), batch.rows(), heads(kind), size(kind));
    host.view().data().fill((byte) POISON);
    for (int r = 0; r < batch.plan().requests().size(); r++) {
      Request request = batch.plan().requests().get(r);
      for (int i = 0; i < request.queryLen(); i++) {
        int position = request.seqLen() - request.queryLen() + i;
        put(host, batch.queryStart(r) + i, kind, request.sequence(), position);
      }
    }
    return host.view();
  }

  /** All keys or values of the batch's requests, back to back. */
  TensorView sequences(Kind kind, HostBatch batch) {
    int keys = batch.plan().requests().map(Request::seqLen).sum().intValue();
    HostTensor host = heap(layer.dtype(), keys, heads(kind), size(kind));
    int row = 0;
    for (Request request : batch.plan().requests()) {
      for (int position = 0; position < request.seqLen(); position++) {
        put(host, row++, kind, request.sequence(), position);
      }
    }
    return upload(host.view());
  }

  private void put(HostTensor host, int row, Kind kind, int sequence, int position) {
    for (int head = 0; head < heads(kind); head++) {
      for (int d = 0; d < size(kind); d++) {
        host.put(values.at(kind, sequence, position, head, d), row, head, d);
      }
    }
  }

  private int heads(Kind kind) {
    return switch (kind) {
      case QUERY -> layer.numHeads();
      case KEY, VALUE -> layer.numKvHeads();
    };
  }

  private int size(Kind kind) {
    return switch (kind) {
      case QUERY, KEY -> layer.headSize();
      case VALUE -> layer.headSizeV();
    };
  }

  /** A tensor of which every number is NaN. */
  TensorView poisoned(DType type, long... shape) {
    HostTensor host = heap(type, shape);
    host.view().data().fill((byte) POISON);
    return upload(host.view());
  }

  /** Whether a byte is still as {@link #poisoned} left it. */
  static boolean isPoison(byte value) {
    return value == (byte) POISON;
  }

  /** Sinks and slopes as far as the layer has them, on the host. */
  LayerParameters hostParameters(long seed) {
    return new LayerParameters(
        Option.when(layer.sinks(), () -> sinks(seed)), Option.when(layer.alibi(), this::slopes));
  }

  private TensorView sinks(long seed) {
    HostTensor sinks = heap(DType.FP32, layer.numHeads());
    for (int head = 0; head < layer.numHeads(); head++) {
      sinks.put(Counter.unitVariance(Counter.mix(seed ^ (0x51L << 32) ^ head)), head);
    }
    return sinks.view();
  }

  private TensorView slopes() {
    HostTensor slopes = heap(DType.FP32, layer.numHeads());
    for (int head = 0; head < layer.numHeads(); head++) {
      slopes.put((float) Math.pow(2, -8.0 * (head + 1) / layer.numHeads()), head);
    }
    return slopes.view();
  }

  /** The same parameters on the device. */
  LayerParameters onDevice(LayerParameters host) {
    return new LayerParameters(
        host.sinks().map(this::upload), host.alibiSlopes().map(this::upload));
  }

  /** A host tensor copied to the device. */
  TensorView upload(TensorView host) {
    MemorySegment memory = device.allocate(host.data().byteSize());
    device.upload(host.data(), memory);
    return TensorView.of(memory, host.dtype(), device.device(), host.shape());
  }

  /** A vector of slots, where the device wants tables. */
  static TensorView longs(TestDevice device, long... values) {
    MemorySegment host = MemorySegment.ofArray(new byte[Long.BYTES * values.length]);
    MemorySegment.copy(values, 0, host, ValueLayout.JAVA_LONG_UNALIGNED, 0, values.length);
    return uploaded(device, host, DType.INT64, values.length);
  }

  /** A matrix of equal rows, where the device wants tables. */
  static TensorView ints(TestDevice device, int[][] rows, int width) {
    MemorySegment host = MemorySegment.ofArray(new byte[Integer.BYTES * rows.length * width]);
    for (int r = 0; r < rows.length; r++) {
      long offset = (long) Integer.BYTES * r * width;
      MemorySegment.copy(rows[r], 0, host, ValueLayout.JAVA_INT_UNALIGNED, offset, width);
    }
    return uploaded(device, host, DType.INT32, rows.length, width);
  }

  private static TensorView uploaded(
      TestDevice device, MemorySegment host, DType type, long... shape) {
    if (device.tablesOnHost()) {
      return TensorView.ofHost(host, type, shape);
    }
    MemorySegment memory = device.allocate(host.byteSize());
    device.upload(host, memory);
    return TensorView.of(memory, type, device.device(), shape);
  }

  /** A copy of a device tensor on the host. */
  static TensorView toHost(TestDevice device, TensorView tensor) {
    MemorySegment host = MemorySegment.ofArray(new byte[Math.toIntExact(tensor.data().byteSize())]);
    device.download(tensor.data(), host);
    return TensorView.ofHost(host, tensor.dtype(), tensor.shape());
  }

  /** Fills memory of the device with one byte. */
  static void fill(TestDevice device, MemorySegment memory, int value) {
    byte[] bytes = new byte[Math.toIntExact(memory.byteSize())];
    device.upload(MemorySegment.ofArray(bytes).fill((byte) value), memory);
  }

  /** Whether memory of the device holds nothing but zeros. */
  static boolean isZero(TestDevice device, MemorySegment memory) {
    byte[] bytes = new byte[Math.toIntExact(memory.byteSize())];
    device.download(memory, MemorySegment.ofArray(bytes));
    for (byte value : bytes) {
      if (value != 0) {
        return false;
      }
    }
    return true;
  }

  private static HostTensor heap(DType type, long... shape) {
    long elements = 1;
    for (long size : shape) {
      elements *= size;
    }
    byte[] bytes = new byte[Math.toIntExact(elements * type.bytes())];
    return HostTensor.over(TensorView.ofHost(MemorySegment.ofArray(bytes), type, shape));
  }
}
