package bifocal.cuda.triton;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvScales;
import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.memory.DeviceBlock;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * What a layer's kernels read besides tensors: sinks and slopes where the host put them, and the
 * scales of its cache, which are copied to the device here.
 */
final class LayerConstants implements AutoCloseable {
  private final long sinks;
  private final long alibiSlopes;
  private final DeviceBlock scales;
  private final int kvHeads;

  private LayerConstants(long sinks, long alibiSlopes, DeviceBlock scales, int kvHeads) {
    this.sinks = sinks;
    this.alibiSlopes = alibiSlopes;
    this.scales = scales;
    this.kvHeads = kvHeads;
  }

  /**
   * Copies the scales of a cache to the device.
   *
   * @throws BifocalException {@code SHAPE_MISMATCH}, {@code DTYPE_MISMATCH} or {@code
   *     DEVICE_MISMATCH} for weights that are not the layer's, {@code DEVICE_MEMORY_EXHAUSTED}
   */
  static LayerConstants of(
      TritonDevice device,
      AttentionLayerSpec.Dense layer,
      LayerParameters parameters,
      KvCacheSpec cache) {
    Device place = device.context().place();
    long sinks = weights("sinks", layer.sinks(), parameters.sinks(), place, layer.numHeads());
    long slopes =
        weights("ALiBi slopes", layer.alibi(), parameters.alibiSlopes(), place, layer.numHeads());
    int heads = cache.numKvHeads();
    DeviceBlock block = device.memory().acquire("KV scales of a layer", 2L * heads * Float.BYTES);
    try (Arena arena = Arena.ofConfined();
        CudaStream stream = CudaStream.create(device.context())) {
      MemorySegment host = arena.allocate(ValueLayout.JAVA_FLOAT, 2L * heads);
      fill(host, cache.scales(), heads);
      stream.copyToDevice(host, block.segment().asSlice(0, host.byteSize()));
      stream.synchronize();
    } catch (RuntimeException failure) {
      try {
        block.close();
      } catch (RuntimeException second) {
        failure.addSuppressed(second);
      }
      throw failure;
    }
    return new LayerConstants(sinks, slopes, block, heads);
  }

  private static void fill(MemorySegment host, KvScales scales, int heads) {
    for (int head = 0; head < heads; head++) {
      host.setAtIndex(ValueLayout.JAVA_FLOAT, head, scales.key(head));
      host.setAtIndex(ValueLayout.JAVA_FLOAT, heads + head, scales.value(head));
    }
  }

  private static long weights(
      String name, boolean wanted, Option<TensorView> given, Device device, int heads) {
    if (!wanted) {
      return 0;
    }
    TensorView view =
        given.getOrElseThrow(
            () ->
                BifocalException.of(
                    ErrorCode.INVALID_PARAMETER,
                    name + " of a layer that has them",
                    "none",
                    "one"));
    view.require(name, DType.FP32, device, heads);
    if (heads > 1 && view.stride(0) != 1) {
      throw BifocalException.of(ErrorCode.SHAPE_MISMATCH, "stride of " + name, view.stride(0), 1);
    }
    return view.address();
  }

  long sinks() {
    return sinks;
  }

  long alibiSlopes() {
    return alibiSlopes;
  }

  /** Scales of keys, one a head. */
  long keyScales() {
    return scales.segment().address();
  }

  /** Scales of values, one a head. */
  long valueScales() {
    return scales.segment().address() + (long) kvHeads * Float.BYTES;
  }

  @Override
  public void close() {
    scales.close();
  }
}
