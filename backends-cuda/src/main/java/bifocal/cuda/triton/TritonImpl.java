package bifocal.cuda.triton;

import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.error.BifocalException;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.memory.CacheCheck;
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
  private final CacheCheck cache;
  private final TritonTensors tensors;
  private final LayerConstants constants;
  private final LaunchMemory memory;
  private final LayerLaunches launches;
  private final Option<LayerLaunches> wide;
  private final LayerWrite write;

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
    this.cache = new CacheCheck(cache, CacheGeometry.ALIGNMENT);
    this.tensors = new TritonTensors(layer, context.place());
    this.constants = constants;
    this.memory = memory;
    this.launches = LayerLaunches.of(device, kernels, layer, geometry, constants, arena);
    this.wide =
        layer.dtype() == DType.FP32
            ? Option.none()
            : LayerLaunches.widened(device, kernels, layer, geometry, constants, arena);
    this.write =
        new LayerWrite(
            device,
            cache,
            tensors,
            new WriteLaunch(
                context, device.kernel(kernels.write()), cache, geometry, constants, arena));
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
    memory.requireOpen();
    write.run(CudaLaunchContext.of(launch), input, view, mapping);
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
    cache.require(cuda, view);
    CacheCheck.requireBlocks(view, step.largestBlock());
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

  @Override
  public void close() {
    if (memory.isOpen()) {
      memory.close();
      constants.close();
    }
  }
}
