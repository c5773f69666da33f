package bifocal.cuda.triton;

import bifocal.core.backend.KvInput;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerParameters;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.memory.LaunchMemory;
import bifocal.cuda.pack.CacheFormat;
import bifocal.cuda.pack.PackRefusal;
import bifocal.cuda.pack.Specialisation;
import io.vavr.control.Option;

/**
 * Writes a layer's keys and values into its cache by this project's kernel, for backends whose own
 * kernels only read.
 */
public final class KvWriter implements AutoCloseable {
  private final LayerConstants constants;
  private final LaunchMemory memory;
  private final LayerWrite write;

  private KvWriter(
      TritonDevice device,
      AttentionLayerSpec.Dense layer,
      KvCacheSpec cache,
      LayerConstants constants,
      LaunchMemory memory) {
    this.constants = constants;
    this.memory = memory;
    this.write =
        new LayerWrite(
            device,
            cache,
            new TritonTensors(layer, device.context().place()),
            new WriteLaunch(
                device.context(),
                device.kernel(kernel(layer, cache)),
                cache,
                CacheGeometry.of(cache),
                constants,
                memory.arena()));
  }

  /**
   * Prepares a layer.
   *
   * @throws BifocalException {@code NATIVE_MISSING} when the pack lacks the kernel, {@code
   *     UNSUPPORTED} for a cache that it does not write
   */
  public static KvWriter of(
      TritonDevice device, AttentionLayerSpec.Dense layer, KvCacheSpec cache) {
    AttentionLayerSpec.Dense plain = layer.withSinks(false).withAlibi(false);
    LayerConstants constants = LayerConstants.of(device, plain, LayerParameters.NONE, cache);
    LaunchMemory memory = new LaunchMemory("the cache's writer");
    try {
      return new KvWriter(device, plain, cache, constants, memory);
    } catch (RuntimeException failure) {
      memory.close();
      try {
        constants.close();
      } catch (RuntimeException second) {
        failure.addSuppressed(second);
      }
      throw failure;
    }
  }

  /** What of it a device's pack lacks. */
  public static Option<PackRefusal> missing(TritonDevice device, AttentionLayerSpec.Dense layer) {
    return CacheFormat.of(layer.kvCacheDtype().resolve(layer.dtype()), layer.dtype())
        .flatMap(
            format ->
                device
                    .pack()
                    .find(new Specialisation.Write(layer.dtype(), format, layer.headSize()))
                    .fold(Option::some, kernel -> Option.none()));
  }

  private static Specialisation.Write kernel(AttentionLayerSpec.Dense layer, KvCacheSpec cache) {
    CacheFormat format =
        CacheFormat.of(cache.dtype(), layer.dtype())
            .getOrElseThrow(
                () ->
                    BifocalException.of(
                        ErrorCode.UNSUPPORTED,
                        "KV cache of a layer of " + layer.dtype(),
                        cache.dtype(),
                        "the layer's own type, or a quantised one"));
    return new Specialisation.Write(layer.dtype(), format, layer.headSize());
  }

  /** Writes a step's keys and values, on the thread that owns the device. */
  public void write(
      CudaLaunchContext launch, KvInput input, KvCacheView view, SlotMapping mapping) {
    memory.requireOpen();
    write.run(launch, input, view, mapping);
  }

  @Override
  public void close() {
    if (memory.isOpen()) {
      memory.close();
      constants.close();
    }
  }
}
