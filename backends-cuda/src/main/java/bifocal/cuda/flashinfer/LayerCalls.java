package bifocal.cuda.flashinfer;

import bifocal.core.backend.AttentionOutput;
import bifocal.core.cache.KvCacheView;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.driver.StepStreams;
import bifocal.cuda.flashinfer.FlashInferStep.Launch;
import bifocal.cuda.flashinfer.FlashInferStep.Planned;
import bifocal.cuda.flashinfer.FlashInferStep.Single;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;

/**
 * The prepared calls of one layer, one for each module it has run. They are made anew only when
 * another cache, stream or thread comes, so a step does not pay for them.
 */
final class LayerCalls {
  private static final int MOST = 4;
  private static final int ALIGNMENT = 16;

  private final FlashInferDevice device;
  private final AttentionLayerSpec.Dense layer;
  private final LiveRows.Copier live;
  private final MemorySegment recording;
  private final @Nullable ModuleKey[] keys = new ModuleKey[MOST];
  private final @Nullable RunCall[] calls = new RunCall[MOST];
  private final StepStreams streams = new StepStreams();
  private @Nullable XqaCall xqa;
  private @Nullable CacheTensors cache;

  /**
   * No calls yet.
   *
   * @param arena of prepared launches
   */
  LayerCalls(FlashInferDevice device, AttentionLayerSpec.Dense layer, Arena arena) {
    this.device = device;
    this.layer = layer;
    long rowBytes = (long) layer.numHeads() * layer.headSize() * layer.dtype().bytes();
    this.live = device.rowKernels().liveRows().copier(rowBytes, arena);
    this.recording = arena.allocate(ValueLayout.JAVA_INT);
  }

  void run(CudaStream stream, TensorView q, KvCacheView view, Launch what, AttentionOutput output) {
    CacheTensors tensors = tensors(view);
    switch (what) {
      case Planned planned -> planned(stream, q, tensors, planned, output);
      case Single single -> single(stream, q, tensors, single, output);
    }
  }

  private void planned(
      CudaStream stream, TensorView q, CacheTensors tensors, Planned what, AttentionOutput output) {
    call(what, tensors, q).call(streams.of(stream), q, tensors, what, output.out(), output.lse());
  }

  private void single(
      CudaStream stream, TensorView q, CacheTensors tensors, Single what, AttentionOutput output) {
    boolean recorded = what.padded() != LaunchDraft.EAGER && stream.capturing(recording);
    if (output.lse().isDefined() || !tensors.wholeHeads()) {
      if (recorded && !what.planned().graph()) {
        throw notCapturable(what);
      }
      planned(stream, q, tensors, what.planned(), output);
      return;
    }
    XqaCall known = xqa(what, tensors, q);
    if (recorded) {
      known.call(streams.of(stream), q, tensors, what, what.padded(), what.packed(), 0);
      live.run(stream, what.packed(), output.out(), what.live(), what.padded());
    } else {
      known.call(streams.of(stream), q, tensors, what, what.rows(), output.out(), what.firstRow());
    }
  }

  private static BifocalException notCapturable(Single what) {
    return BifocalException.of(
            ErrorCode.NOT_CAPTURABLE,
            "decode with log-sum-exps",
            what.planned().label() + ", which plans for these lengths only",
            what.key().label() + ", which returns none")
        .withRemedy("ask for no log-sum-exps, or give the pack an fa2 prefill of this layer");
  }

  private CacheTensors tensors(KvCacheView view) {
    CacheTensors known = cache;
    if (known == null || known.view() != view) {
      known = CacheTensors.of(view);
      requireAligned(view);
      cache = known;
    }
    return known;
  }

  private static void requireAligned(KvCacheView view) {
    if ((view.memory().address() | view.blockStride()) % ALIGNMENT != 0) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          "address and block stride of a KV cache",
          "0x" + Long.toHexString(view.memory().address()) + ", " + view.blockStride(),
          "multiples of " + ALIGNMENT + " bytes");
    }
  }

  private XqaCall xqa(Single what, CacheTensors tensors, TensorView rows) {
    XqaCall known = xqa;
    if (known == null || known.owner() != Thread.currentThread()) {
      known =
          new XqaCall(
              device.module(what.key()), layer, device.multiprocessors(), tensors, what, rows);
      xqa = known;
    }
    return known;
  }

  private RunCall call(Planned what, CacheTensors tensors, TensorView rows) {
    int at = 0;
    while (at < MOST && keys[at] != null && !what.key().equals(keys[at])) {
      at++;
    }
    if (at == MOST) {
      throw new IllegalStateException("a layer runs at most " + MOST + " modules that plan");
    }
    RunCall known = calls[at];
    if (known == null || known.owner() != Thread.currentThread()) {
      known = new RunCall(device.module(what.key()), layer, tensors, what.pageStart(), rows);
      calls[at] = known;
      keys[at] = what.key();
    }
    return known;
  }
}
