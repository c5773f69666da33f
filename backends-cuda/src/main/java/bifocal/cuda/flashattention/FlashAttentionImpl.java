package bifocal.cuda.flashattention;

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
import bifocal.cuda.flashattention.FlashAttentionStep.Call;
import bifocal.cuda.memory.CacheCheck;
import bifocal.cuda.memory.GaplessTensors;
import bifocal.cuda.memory.LaunchMemory;
import bifocal.cuda.triton.KvWriter;
import java.util.List;

/**
 * Runs one layer: the calls of its step. Every shape, type and bound is checked before an address
 * reaches a forward.
 */
final class FlashAttentionImpl implements AttentionImpl<FlashAttentionMetadata> {
  private final CacheCheck cache;
  private final GaplessTensors tensors;
  private final KvWriter writer;
  private final LaunchMemory memory;
  private final LayerForwards forwards;

  private FlashAttentionImpl(
      ForwardDevice device, AttentionLayerSpec.Dense layer, KvCacheSpec cache, KvWriter writer) {
    this.cache = new CacheCheck(cache, GaplessTensors.VECTOR_BYTES);
    this.tensors = new GaplessTensors(layer, device.context().place());
    this.writer = writer;
    this.memory = new LaunchMemory("the layer's implementation");
    this.forwards = new LayerForwards(device, layer);
  }

  /**
   * Prepares a layer.
   *
   * @throws BifocalException {@code UNSUPPORTED} for what no forward computes, {@code
   *     NATIVE_MISSING} for what the packs lack
   */
  static FlashAttentionImpl of(
      ForwardDevice device, AttentionLayerSpec.Dense layer, KvCacheSpec cache) {
    CacheCheck.requirePlain(cache);
    return new FlashAttentionImpl(
        device, layer, cache, KvWriter.of(device.kernels(), layer, cache));
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
      FlashAttentionMetadata metadata,
      AttentionOutput output) {
    launch.requireOwner();
    CudaLaunchContext cuda = CudaLaunchContext.of(launch);
    memory.requireOpen();
    FlashAttentionStep step = current(metadata);
    cache.require(cuda, view);
    CacheCheck.requireBlocks(view, step.largestBlock());
    tensors.requireQueries(q, step.tokens());
    tensors.requireOutput(output.out(), step.tokens());
    TensorView sums = step.sums();
    if (output.lse().isDefined()) {
      sums = output.lse().get();
      tensors.requireLse(sums, step.tokens());
    }
    run(cuda.queue(), step, q, view, output.out(), sums);
  }

  /** Tails of the calls fill the device together. */
  private void run(
      CudaStream stream,
      FlashAttentionStep step,
      TensorView q,
      KvCacheView view,
      TensorView out,
      TensorView sums) {
    List<Call> calls = step.calls();
    switch (calls.size()) {
      case 0 -> {}
      case 1 -> forwards.run(stream, calls.getFirst(), step.tokens(), q, view, out, sums);
      default -> {
        try (StreamFork fork = stream.fork()) {
          forwards.run(stream, calls.getFirst(), step.tokens(), q, view, out, sums);
          forwards.run(fork.queue(), calls.getLast(), step.tokens(), q, view, out, sums);
        }
      }
    }
  }

  private static FlashAttentionStep current(FlashAttentionMetadata metadata) {
    return switch (metadata) {
      case FlashAttentionStep step -> {
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
