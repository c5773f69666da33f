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
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.memory.LaunchMemory;
import bifocal.cuda.pack.CacheFormat;
import bifocal.cuda.pack.PackRefusal;
import bifocal.cuda.pack.Specialisation;
import io.vavr.control.Option;
import org.jspecify.annotations.Nullable;

/**
 * Writes a layer's keys and values into its cache by this project's kernel, for backends whose own
 * kernels only read.
 */
public final class KvWriter implements AutoCloseable {
  private final KvCacheSpec cache;
  private final TritonTensors tensors;
  private final LayerConstants constants;
  private final TritonDevice device;
  private final LaunchMemory memory;
  private final WriteLaunch write;
  private @Nullable SlotUpload slots;
  private long slotsStream;

  private KvWriter(
      TritonDevice device,
      AttentionLayerSpec.Dense layer,
      KvCacheSpec cache,
      LayerConstants constants,
      LaunchMemory memory) {
    this.cache = cache;
    this.tensors = new TritonTensors(layer, device.context().place());
    this.constants = constants;
    this.memory = memory;
    this.write =
        new WriteLaunch(
            device.context(),
            device.kernel(kernel(layer, cache)),
            cache,
            CacheGeometry.of(cache),
            constants,
            memory.arena());
    this.device = device;
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
    requireCache(launch, view);
    KvInput.Dense dense = requireDense(input);
    long tokens = mapping.tokens();
    tensors.requireKeyValues(dense.k(), "keys", tokens);
    tensors.requireKeyValues(dense.v(), "values", tokens);
    if (tokens > 0) {
      long address = slots(launch.queue()).address(launch.queue(), mapping, view);
      write.run(launch.queue(), dense.k(), dense.v(), view, address, Math.toIntExact(tokens));
    }
  }

  private SlotUpload slots(CudaStream stream) {
    SlotUpload known = slots;
    if (known == null || slotsStream != stream.handle()) {
      known = device.slots(stream);
      slots = known;
      slotsStream = stream.handle();
    }
    return known;
  }

  private void requireCache(CudaLaunchContext launch, KvCacheView view) {
    view.requireOpen();
    if (!view.spec().equals(cache)) {
      throw BifocalException.of(
          ErrorCode.KV_INCOMPATIBLE, "contract of a KV cache", view.spec(), cache);
    }
    if (!view.device().equals(launch.device())) {
      throw BifocalException.of(
          ErrorCode.DEVICE_MISMATCH, "KV cache", view.device(), launch.device());
    }
    if ((view.memory().address() | view.blockStride()) % CacheGeometry.ALIGNMENT != 0) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          "address and block stride of a KV cache",
          "0x" + Long.toHexString(view.memory().address()) + ", " + view.blockStride(),
          "multiples of " + CacheGeometry.ALIGNMENT + " bytes");
    }
  }

  private static KvInput.Dense requireDense(KvInput input) {
    return switch (input) {
      case KvInput.Dense dense -> dense;
      case KvInput.Latent latent ->
          throw BifocalException.of(
              ErrorCode.MLA_NOT_EXECUTABLE, "latent keys", "ckv", "keys and values");
    };
  }

  @Override
  public void close() {
    if (memory.isOpen()) {
      memory.close();
      constants.close();
    }
  }
}
