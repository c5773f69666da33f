package bifocal.cuda.triton;

import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.memory.LaunchMemory;
import io.vavr.control.Option;
import java.lang.foreign.Arena;

/**
 * Runs one layer: a launch for tiles of many queries, one for tiles of few, and one that merges the
 * latter when they were divided. Every shape, type and bound is checked before an address reaches a
 * kernel.
 */
final class TritonImpl implements AttentionImpl<TritonMetadata> {
  private final TritonVariant variant;
  private final KvCacheSpec cache;
  private final TritonTensors tensors;
  private final LayerConstants constants;
  private final StreamSlots slots;
  private final LaunchMemory memory;
  private final LayerLaunches launches;
  private final Option<LayerLaunches> wide;
  private final WriteLaunch write;

  private TritonImpl(
      TritonDevice device,
      TritonVariant variant,
      AttentionLayerSpec.Dense layer,
      KvCacheSpec cache,
      LayerConstants constants,
      LaunchMemory memory) {
    Arena arena = memory.arena();
    CudaContext context = device.context();
    LayerKernels kernels = LayerKernels.of(device.pack(), variant, layer, cache);
    CacheGeometry geometry = CacheGeometry.of(cache);
    this.variant = variant;
    this.cache = cache;
    this.tensors = new TritonTensors(layer, context.place());
    this.constants = constants;
    this.slots = new StreamSlots(device);
    this.memory = memory;
    this.launches = LayerLaunches.of(device, kernels, layer, geometry, constants, arena);
    this.wide =
        layer.dtype() == DType.FP32
            ? Option.none()
            : LayerLaunches.widened(device, kernels, layer, geometry, constants, arena);
    this.write =
        new WriteLaunch(context, device.kernel(kernels.write()), cache, geometry, constants, arena);
  }

  /**
   * Prepares a layer.
   *
   * @throws BifocalException {@code UNSUPPORTED} for what no kernel computes, {@code
   *     NATIVE_MISSING} for what the pack lacks
   */
  static TritonImpl of(
      TritonDevice device,
      TritonVariant variant,
      AttentionLayerSpec.Dense layer,
      LayerParameters parameters,
      KvCacheSpec cache) {
    LayerConstants constants = LayerConstants.of(device, layer, parameters, cache);
    LaunchMemory memory = new LaunchMemory("the layer's implementation");
    try {
      return new TritonImpl(device, variant, layer, cache, constants, memory);
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

  @Override
  public void writeKv(LaunchContext launch, KvInput input, KvCacheView view, SlotMapping mapping) {
    launch.requireOwner();
    CudaLaunchContext cuda = CudaLaunchContext.of(launch);
    memory.requireOpen();
    requireCache(cuda, view);
    KvInput.Dense dense = requireDense(input);
    long tokens = mapping.tokens();
    tensors.requireKeyValues(dense.k(), "keys", tokens);
    tensors.requireKeyValues(dense.v(), "values", tokens);
    if (tokens > 0) {
      long address = slots.address(cuda.queue(), mapping, view);
      write.run(cuda.queue(), dense.k(), dense.v(), view, address, Math.toIntExact(tokens));
    }
  }

  @Override
  public void forward(
      LaunchContext launch,
      TensorView q,
      KvCacheView view,
      TritonMetadata metadata,
      AttentionOutput output) {
    launch.requireOwner();
    CudaLaunchContext cuda = CudaLaunchContext.of(launch);
    memory.requireOpen();
    TritonStep step = current(metadata);
    requireCache(cuda, view);
    requireBlocks(step, view);
    tensors.requireQueries(q, step.tokens());
    tensors.requireOutput(output.out(), step.tokens(), wide.isDefined());
    if (output.lse().isDefined()) {
      tensors.requireLse(output.lse().get(), step.tokens());
    }
    launches(output.out().dtype()).run(cuda.queue(), q, view, step, output);
  }

  /** The launches into outputs of a type that was checked. */
  private LayerLaunches launches(DType out) {
    return out == DType.FP32 && wide.isDefined() ? wide.get() : launches;
  }

  private TritonStep current(TritonMetadata metadata) {
    return switch (metadata) {
      case TritonStep step -> {
        step.requireCurrent(variant);
        yield step;
      }
    };
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

  private static void requireBlocks(TritonStep step, KvCacheView view) {
    if (step.largestBlock() >= view.numBlocks()) {
      throw BifocalException.of(
          ErrorCode.BLOCK_OUT_OF_RANGE,
          "block of the block table",
          step.largestBlock(),
          "0.." + (view.numBlocks() - 1));
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
