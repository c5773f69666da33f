package bifocal.core.engine;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HostLaunchContext;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.Batches;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import com.sun.management.ThreadMXBean;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Test;

class StepAllocationTest {
  private static final int ROUNDS = 30_000;
  private static final KvCacheSpec CACHE =
      new KvCacheSpec(KvLayouts.NHD, KvCacheDtype.FLOAT32, 16, 1, 8, 8, KvScales.ONE);
  private static final TensorView Q =
      TensorView.ofHost(MemorySegment.ofArray(new float[8 * 8]), DType.FP32, 8, 1, 8);

  @Test
  void runningALayerMakesNothingOnTheWayToTheKernel() {
    Counting backend = new Counting();
    LaunchContext launch = new HostLaunchContext(AttentionObserver.NONE);
    Workspace workspace = Workspace.wrap(MemorySegment.ofArray(new byte[1]), WorkspacePlan.NONE, 1);
    LayerGroup group =
        LayerGroup.of(
            "full", AttentionLayerSpec.Dense.decoder(1, 1, 8, DType.FP32, AttentionMask.CAUSAL));
    KvCacheView view =
        KvCacheView.wrap(MemorySegment.ofArray(new byte[(int) (2 * CACHE.blockBytes())]), CACHE);
    KvInput input = new KvInput.Dense(Q, Q);
    AttentionOutput output = AttentionOutput.of(Q);
    try (GroupRuntime<Counting.Empty> runtime = GroupRuntime.open(backend, group, CACHE)) {
      GroupStep<Counting.Empty> step =
          runtime.step(
              new StepContext(launch, workspace.openStep(), 0),
              Batches.of(new int[] {1, 7}, new int[] {9, 7}).build());
      run(step, input, view, output);
      ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
      long before = threads.getCurrentThreadAllocatedBytes();
      run(step, input, view, output);
      long allocated = threads.getCurrentThreadAllocatedBytes() - before;
      assertThat(backend.calls).isEqualTo(4 * ROUNDS);
      assertThat(allocated / ROUNDS).as("bytes per layer").isZero();
    }
  }

  private static void run(
      GroupStep<Counting.Empty> step, KvInput input, KvCacheView view, AttentionOutput output) {
    for (int i = 0; i < ROUNDS; i++) {
      step.writeKv(0, input, view);
      step.forward(0, Q, view, output);
    }
  }

  /** Counts what reaches its kernels. */
  private static final class Counting implements AttentionBackend<Counting.Empty> {
    private record Empty() implements AttentionMetadata {}

    private int calls;

    @Override
    public BackendName name() {
      return new BackendName("COUNTING");
    }

    @Override
    public Capabilities capabilities() {
      return Capabilities.of(FeatureSet.NONE);
    }

    @Override
    public AttentionMetadataBuilder<Empty> createBuilder(LayerGroup group, KvCacheSpec cache) {
      return (step, layers, batch) -> new Empty();
    }

    @Override
    public AttentionImpl<Empty> createImpl(
        AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
      return new AttentionImpl<>() {
        @Override
        public void writeKv(
            LaunchContext launch, KvInput input, KvCacheView view, SlotMapping slots) {
          calls++;
        }

        @Override
        public void forward(
            LaunchContext launch,
            TensorView q,
            KvCacheView view,
            Empty metadata,
            AttentionOutput output) {
          calls++;
        }
      };
    }
  }
}
