package bifocal.cpu.attention;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvScales;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.cpu.attention.Scene.Request;
import bifocal.cpu.attention.Scene.Result;
import bifocal.cpu.kernel.CpuKernels;
import bifocal.cpu.thread.CpuThreads;
import bifocal.reference.Tolerance;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Runs of one request become work items as if nobody had cut the request. */
final class RunsOfARequestTest {
  private static final AttentionLayerSpec.Dense LAYER =
      AttentionLayerSpec.Dense.decoder(8, 2, 64, DType.FP32, AttentionMask.CAUSAL);
  private static final int UNLIMITED = -1;
  private static final Request[] REQUESTS = {Request.of(1, 90), Request.of(700, 900)};
  private static final int PROMPT = 1;
  private static final int FIRST_QUERY = 200;
  private static final int IMAGE = 350;
  private static final int TEXT = 610;
  private static final int LAST_QUERY = 899;

  static Stream<CpuKernels> kernels() {
    return CpuAttentionTest.kernels();
  }

  static Stream<Arguments> kernelsAndMasks() {
    return kernels()
        .flatMap(
            kernels ->
                Stream.of(
                    Arguments.of(kernels, AttentionMask.CAUSAL),
                    Arguments.of(kernels, AttentionMask.CAUSAL.withWindow(300))));
  }

  /** Text, an image whose queries see all of it, and text again. */
  private static CommonAttentionMetadata cut(CommonAttentionMetadata batch) {
    return batch
        .cut(4)
        .request(0)
        .run(PROMPT, FIRST_QUERY, IMAGE - 1, 0)
        .run(PROMPT, IMAGE, TEXT - 1, UNLIMITED)
        .run(PROMPT, TEXT, LAST_QUERY, 0)
        .withoutImages();
  }

  @ParameterizedTest
  @MethodSource("kernels")
  void theyTakeAsManyItemsAsTheirRequest(CpuKernels kernels) {
    try (Scene scene = new Scene(LAYER, 16, KvScales.ONE, 1)) {
      CommonAttentionMetadata batch = scene.batch(REQUESTS);

      assertThat(items(scene, kernels, cut(batch))).isEqualTo(items(scene, kernels, batch));
    }
  }

  @ParameterizedTest
  @MethodSource("kernels")
  void runsWithQueriesOfAnotherBetweenThemStayApart(CpuKernels kernels) {
    try (Scene scene = new Scene(LAYER, 16, KvScales.ONE, 1)) {
      CommonAttentionMetadata batch = scene.batch(REQUESTS);
      CommonAttentionMetadata first =
          batch.cut(1).run(PROMPT, FIRST_QUERY, FIRST_QUERY + 4, 0).withoutImages();
      CommonAttentionMetadata both =
          batch
              .cut(2)
              .run(PROMPT, FIRST_QUERY, FIRST_QUERY + 4, 0)
              .run(PROMPT, FIRST_QUERY + 6, FIRST_QUERY + 9, 0)
              .withoutImages();

      assertThat(items(scene, kernels, both)).isEqualTo(2 * items(scene, kernels, first));
    }
  }

  @ParameterizedTest
  @MethodSource("kernelsAndMasks")
  void eachQuerySeesTheKeysOfItsRun(CpuKernels kernels, AttentionMask mask) {
    try (Scene scene = new Scene(LAYER.withMask(mask), 16, KvScales.ONE, 3)) {
      KvCacheView cache = scene.cache(REQUESTS);
      CommonAttentionMetadata batch = cut(scene.batch(REQUESTS));
      TensorView q = scene.random(DType.FP32, 1, batch.tokens(), 8, 64);

      Result result = scene.run(cpu(kernels), cache, batch, q);

      assertThat(result.agreement().within(Tolerance.of(DType.FP32)))
          .as("%s", result.agreement())
          .isTrue();
    }
  }

  private static AttentionBackend<CpuAttentionMetadata> cpu(CpuKernels kernels) {
    return new CpuAttnBackend(new CpuRuntime(kernels, CpuThreads.shared()));
  }

  private static long items(Scene scene, CpuKernels kernels, CommonAttentionMetadata batch) {
    AttentionBackend<CpuAttentionMetadata> backend = cpu(kernels);
    WorkspacePlan plan = backend.workspace(scene.group, scene.spec, new BatchLimits(4, 1024, 1024));
    try (Workspace workspace = Workspace.allocate(plan, 1);
        Workspace.Step step = workspace.openStep()) {
      CpuAttentionMetadata built =
          backend
              .createBuilder(scene.group, scene.spec)
              .build(new StepContext(scene.launch, step, 0), scene.group, batch);
      return ((StepPlan) built).items();
    }
  }
}
