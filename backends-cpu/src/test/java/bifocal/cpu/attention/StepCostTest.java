package bifocal.cpu.attention;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvScales;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.cpu.attention.Scene.Request;
import bifocal.cpu.kernel.CpuKernels;
import bifocal.cpu.thread.CpuThreads;
import bifocal.cpu.thread.ThreadBudget;
import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What a step costs beside its arithmetic, and that the arithmetic is compiled. */
final class StepCostTest {
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private static final long PATIENCE_NANOS = 60_000_000_000L;
  private static final int QUIET_STEPS = 50;
  private static final AttentionLayerSpec.Dense LAYER =
      AttentionLayerSpec.Dense.decoder(
          8,
          2,
          64,
          DType.BF16,
          AttentionMask.CAUSAL.withWindow(40).withImages(ImageMask.CLAMP_PAST));

  static Stream<CpuKernels> kernels() {
    return CpuAttentionTest.kernels();
  }

  @ParameterizedTest
  @MethodSource("kernels")
  void forwardAllocatesNothingAndBuildLittle(CpuKernels kernels) {
    CpuRuntime runtime = new CpuRuntime(kernels, new CpuThreads(new ThreadBudget(1, "test")));
    Request[] requests = {Request.of(20, 20, 4, 9, 10, 15), Request.of(1, 90)};
    try (Scene scene = new Scene(LAYER, 32, KvScales.ONE, 1);
        Steps steps = new Steps(scene, new FlexAttentionBackend(runtime), requests)) {
      long built = Long.MAX_VALUE;
      long run = Long.MAX_VALUE;
      // As long as the compilers work, vectors are objects.
      long begin = System.nanoTime();
      for (int quiet = 0; quiet < QUIET_STEPS && System.nanoTime() - begin < PATIENCE_NANOS; ) {
        long start = THREADS.getCurrentThreadAllocatedBytes();
        CpuAttentionMetadata metadata = steps.build();
        long afterBuild = THREADS.getCurrentThreadAllocatedBytes();
        steps.forward(metadata);
        run = THREADS.getCurrentThreadAllocatedBytes() - afterBuild;
        built = afterBuild - start;
        quiet = run == 0 ? quiet + 1 : 0;
        steps.end();
      }
      assertThat(built).as("bytes of the heap in the last build").isLessThanOrEqualTo(8 * 1024);
      assertThat(run).as("bytes of the heap in the last forward").isZero();
    }
  }

  @Test
  void metadataOfAStepThatIsOverIsRefused() {
    CpuRuntime runtime = CpuRuntime.ofThisJvm();
    try (Scene scene = new Scene(LAYER, 32, KvScales.ONE, 1);
        Steps steps =
            new Steps(scene, new FlexAttentionBackend(runtime), Request.of(60, 60, 10, 25))) {
      CpuAttentionMetadata old = steps.build();
      steps.end();
      steps.build();

      assertThatThrownBy(() -> steps.forward(old))
          .isInstanceOfSatisfying(
              BifocalException.class,
              refusal -> assertThat(refusal.code()).isEqualTo(ErrorCode.CLOSED));
    }
  }

  /**
   * A method that the JIT gives up on computes fifty times slower. The floor is far below what a
   * busy machine reaches, and far above that: one multiply-add per lane in ten nanoseconds.
   */
  @Test
  void theVectorKernelsAreCompiled() {
    CpuKernels kernels = KernelChoice.vector();
    int lanes = Integer.parseInt(kernels.name().substring("vector-".length())) / Float.SIZE;
    for (DType type : new DType[] {DType.FP32, DType.BF16}) {
      AttentionLayerSpec.Dense layer =
          AttentionLayerSpec.Dense.decoder(8, 2, 128, type, AttentionMask.CAUSAL);
      CpuRuntime runtime = new CpuRuntime(kernels, new CpuThreads(new ThreadBudget(1, "test")));
      int tokens = 256;
      double flops = 4.0 * 128 * 8 * tokens * (tokens + 1) / 2;
      double floor = 0.4 * lanes;
      try (Scene scene = new Scene(layer, 32, KvScales.ONE, 1);
          Steps steps = new Steps(scene, new CpuAttnBackend(runtime), Request.of(tokens, tokens))) {
        double best = 0;
        for (int run = 0; run < 600 && best < floor; run++) {
          CpuAttentionMetadata metadata = steps.build();
          long start = THREADS.getCurrentThreadCpuTime();
          steps.forward(metadata);
          best = Math.max(best, flops / (THREADS.getCurrentThreadCpuTime() - start));
          steps.end();
        }
        assertThat(best).as("GFLOP/s of %s with %s", kernels, type).isGreaterThan(floor);
      }
    }
  }

  /** One layer whose steps are built and run again and again. */
  private static final class Steps implements AutoCloseable {
    private final Scene scene;
    private final KvCacheView cache;
    private final CommonAttentionMetadata batch;
    private final TensorView q;
    private final AttentionOutput output;
    private final Workspace workspace;
    private final AttentionMetadataBuilder<CpuAttentionMetadata> builder;
    private final AttentionImpl<CpuAttentionMetadata> impl;
    private Workspace.Step step;

    Steps(Scene scene, AttentionBackend<CpuAttentionMetadata> backend, Request... requests) {
      this.scene = scene;
      this.cache = scene.cache(requests);
      this.batch = scene.batch(requests);
      this.q =
          scene.random(
              scene.layer.dtype(),
              1,
              batch.tokens(),
              scene.layer.numHeads(),
              scene.layer.headSize());
      this.output = scene.output(batch.tokens());
      WorkspacePlan plan =
          backend.workspace(scene.group, scene.spec, new BatchLimits(4, 512, 1024));
      this.workspace =
          Workspace.wrap(
              scene.arena.allocate(plan.totalBytes(1), WorkspacePlan.ALIGNMENT), plan, 1);
      this.builder = backend.createBuilder(scene.group, scene.spec);
      this.impl = backend.createImpl(scene.layer, scene.parameters, scene.spec);
      this.step = workspace.openStep();
    }

    CpuAttentionMetadata build() {
      return builder.build(new StepContext(scene.launch, step, 0), scene.group, batch);
    }

    void forward(CpuAttentionMetadata metadata) {
      impl.forward(scene.launch, q, cache, metadata, output);
    }

    void end() {
      step.close();
      step = workspace.openStep();
    }

    @Override
    public void close() {
      impl.close();
    }
  }
}
