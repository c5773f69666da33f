package bifocal.cpu.memory;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvScales;
import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.cpu.cache.CpuPackedLayout;
import bifocal.cpu.cache.KernelType;
import bifocal.cpu.ffi.HeldMemory;
import bifocal.cpu.kernel.AttendParams;
import bifocal.cpu.kernel.KvWriteParams;
import bifocal.cpu.raw.RawMemory;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The native memory of one layer: parameter blocks for its kernels, and copies of its sinks, slopes
 * and scales. The layer's implementation owns it and closes it.
 */
public final class LayerMemory implements AutoCloseable {
  private static final long ALIGNMENT = 64;

  private final Arena arena = Arena.ofShared();
  private final AttendParams cached;
  private final AttendParams uncached;
  private final KvWriteParams write;
  private final KvWriteParams pack;
  private final HeldMemory held = new HeldMemory("the attention layer");

  /**
   * Allocates and fills a layer's blocks.
   *
   * @param cache contract of the layer's cache
   * @param packed contract of the scratch blocks that take the keys of layers without a cache
   * @throws BifocalException {@code INVALID_PARAMETER} or {@code NOT_FINITE} for sinks or slopes
   */
  public LayerMemory(
      AttentionLayerSpec.Dense layer,
      LayerParameters parameters,
      KvCacheSpec cache,
      KvCacheSpec packed) {
    try {
      cached = new AttendParams(block(AttendParams.BYTES));
      uncached = new AttendParams(block(AttendParams.BYTES));
      write = new KvWriteParams(block(KvWriteParams.BYTES));
      pack = new KvWriteParams(block(KvWriteParams.BYTES));
      KernelType type = KernelType.of(layer.dtype()).get();
      long sinks = layer.sinks() ? perHead("sinks", layer, parameters.sinks()) : 0;
      long slopes = layer.alibi() ? perHead("ALiBi slopes", layer, parameters.alibiSlopes()) : 0;
      long keyScales =
          cache.scales().isOne() ? 0 : scales(cache.scales(), cache.numKvHeads(), true);
      long valueScales =
          cache.scales().isOne() ? 0 : scales(cache.scales(), cache.numKvHeads(), false);
      float softcap = layer.softcap().map(Double::floatValue).getOrElse(0f);
      CpuPackedLayout.Shape shape = CpuPackedLayout.Shape.of(cache);
      CpuPackedLayout.Shape packedShape = CpuPackedLayout.Shape.of(packed);
      float scale = (float) layer.scale();
      cached.describe(
          shape, keyScales, valueScales, type, layer.numHeads(), scale, softcap, sinks, slopes);
      uncached.describe(packedShape, 0, 0, type, layer.numHeads(), scale, softcap, sinks, slopes);
      write.describe(shape, keyScales, valueScales, type);
      pack.describe(packedShape, 0, 0, type);
    } catch (RuntimeException | Error e) {
      arena.close();
      throw e;
    }
  }

  /** Parameters of attention over the cache. */
  public AttendParams cached() {
    return cached;
  }

  /** Parameters of attention over keys packed into scratch. */
  public AttendParams uncached() {
    return uncached;
  }

  /** Parameters of writes into the cache. */
  public KvWriteParams write() {
    return write;
  }

  /** Parameters of writes into scratch. */
  public KvWriteParams pack() {
    return pack;
  }

  /** Holds the memory of one call at a time, and keeps the layer open as long. */
  public HeldMemory held() {
    return held;
  }

  /**
   * Releases the memory; closing twice is harmless.
   *
   * @throws BifocalException {@code IN_USE} while a call runs
   */
  @Override
  public void close() {
    held.close();
    if (arena.scope().isAlive()) {
      arena.close();
    }
  }

  private MemorySegment block(long bytes) {
    return arena.allocate(bytes, ALIGNMENT);
  }

  private long perHead(String what, AttentionLayerSpec layer, Option<TensorView> given) {
    TensorView view =
        given.getOrElseThrow(
            () ->
                BifocalException.of(
                    ErrorCode.INVALID_PARAMETER, what + " of a layer", "none", "one per head"));
    view.require(what, DType.FP32, Device.HOST, layer.numHeads());
    long to = block(4L * layer.numHeads()).address();
    for (int head = 0; head < layer.numHeads(); head++) {
      float value = view.data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 4L * head * view.stride(0));
      if (!Float.isFinite(value)) {
        throw BifocalException.of(
            ErrorCode.NOT_FINITE, what + " of head " + head, value, "a finite number");
      }
      RawMemory.writeFloat(to + 4L * head, value);
    }
    return to;
  }

  private long scales(KvScales scales, int heads, boolean keys) {
    long to = block(4L * heads).address();
    for (int head = 0; head < heads; head++) {
      RawMemory.writeFloat(to + 4L * head, keys ? scales.key(head) : scales.value(head));
    }
    return to;
  }
}
