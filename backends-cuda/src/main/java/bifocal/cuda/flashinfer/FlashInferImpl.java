package bifocal.cuda.flashinfer;

import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.error.BifocalException;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.driver.StreamFork;
import bifocal.cuda.memory.CacheCheck;
import bifocal.cuda.memory.GaplessTensors;
import bifocal.cuda.memory.LaunchMemory;
import bifocal.cuda.triton.KvWriter;

/**
 * Runs one layer: the launches of its step, then the conversion of their sums. Every shape, type
 * and bound is checked before an address reaches a module.
 */
final class FlashInferImpl implements AttentionImpl<FlashInferMetadata> {
  private final CacheCheck cache;
  private final GaplessTensors tensors;
  private final LaunchMemory memory;
  private final NaturalLog.Converter logarithm;
  private final KvWriter writer;
  private final LayerCalls calls;

  private FlashInferImpl(
      FlashInferDevice device,
      AttentionLayerSpec.Dense layer,
      KvCacheSpec cache,
      KvWriter writer,
      LaunchMemory memory) {
    this.cache = new CacheCheck(cache, GaplessTensors.VECTOR_BYTES);
    this.tensors = new GaplessTensors(layer, device.context().place());
    this.memory = memory;
    this.writer = writer;
    this.logarithm = device.rowKernels().naturalLog().converter(layer.numHeads(), memory.arena());
    this.calls = new LayerCalls(device, layer, memory.arena());
  }

  /**
   * Prepares a layer.
   *
   * @throws BifocalException {@code UNSUPPORTED} for what no module computes, {@code
   *     NATIVE_MISSING} for what the packs lack
   */
  static FlashInferImpl of(
      FlashInferDevice device, AttentionLayerSpec.Dense layer, KvCacheSpec cache) {
    CacheCheck.requirePlain(cache);
    KvWriter writer = KvWriter.of(device.kernels(), layer, cache);
    LaunchMemory memory = new LaunchMemory("the layer's implementation");
    try {
      return new FlashInferImpl(device, layer, cache, writer, memory);
    } catch (RuntimeException failure) {
      memory.close();
      try {
        writer.close();
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
    writer.write(CudaLaunchContext.of(launch), input, view, mapping);
  }

  @Override
  public void forward(
      LaunchContext launch,
      TensorView q,
      KvCacheView view,
      FlashInferMetadata metadata,
      AttentionOutput output) {
    launch.requireOwner();
    CudaLaunchContext cuda = CudaLaunchContext.of(launch);
    memory.requireOpen();
    FlashInferStep step = current(metadata);
    cache.require(cuda, view);
    CacheCheck.requireBlocks(view, step.largestBlock());
    tensors.requireQueries(q, step.tokens());
    tensors.requireOutput(output.out(), step.tokens());
    if (output.lse().isDefined()) {
      tensors.requireLse(output.lse().get(), step.tokens());
    }
    try {
      run(cuda.queue(), q, view, step, output);
    } catch (RuntimeException | Error failure) {
      // What a module left in its counters is not known.
      step.workspace().markDirty();
      throw failure;
    }
    if (output.lse().isDefined() && step.sums().count() > 0) {
      logarithm.run(cuda.queue(), output.lse().get(), step.sums());
    }
  }

  /** Where the last launch may run beside those before it, the tails of both fill the device. */
  private void run(
      CudaStream stream,
      TensorView q,
      KvCacheView view,
      FlashInferStep step,
      AttentionOutput output) {
    int count = step.launches().size();
    if (!step.lastBeside()) {
      run(stream, q, view, step, count, output);
      return;
    }
    try (StreamFork fork = stream.fork()) {
      run(stream, q, view, step, count - 1, output);
      calls.run(fork.queue(), q, view, step.launches().getLast(), output);
    }
  }

  private void run(
      CudaStream stream,
      TensorView q,
      KvCacheView view,
      FlashInferStep step,
      int count,
      AttentionOutput output) {
    for (int i = 0; i < count; i++) {
      calls.run(stream, q, view, step.launches().get(i), output);
    }
  }

  private static FlashInferStep current(FlashInferMetadata metadata) {
    return switch (metadata) {
      case FlashInferStep step -> {
        step.workspace().requireOpen();
        yield step;
      }
    };
  }

  @Override
  public void close() {
    if (memory.isOpen()) {
      memory.close();
      writer.close();
    }
  }
}
