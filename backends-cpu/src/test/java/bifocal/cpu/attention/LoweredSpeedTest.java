package bifocal.cpu.attention;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.composite.CompositeBackends;
import bifocal.composite.CompositeMetadata;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvScales;
import bifocal.core.ffi.HugePages;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.cpu.attention.Scene.Request;
import bifocal.cpu.thread.CpuThreads;
import bifocal.cpu.thread.ThreadBudget;
import bifocal.routing.Lowering;
import bifocal.routing.MMPrefixAttentionRouting;
import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Locale;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Images at the speed of the causal kernel: a batch whose images are lowered beside the same tokens
 * as text, in turns in one process, over the same queries and the same cache. One thread, whose
 * processor time is counted, so that other work on the machine is left out; what that takes of the
 * caches is not, so that there are many rounds and their median counts.
 */
@Tag("full")
final class LoweredSpeedTest {
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private static final int REQUESTS = 8;
  private static final int TOKENS = 2048;
  private static final int[] IMAGES = {100, 355, 600, 855, 1100, 1355, 1700, 1955};
  private static final int ROUNDS = Integer.getInteger("bifocal.rounds", 40);

  @ParameterizedTest
  @ValueSource(ints = {0, 1024})
  void loweredImagesRunAsFastAsText(int window) {
    AttentionMask text =
        window == 0 ? AttentionMask.CAUSAL : AttentionMask.CAUSAL.withWindow(window);
    AttentionMask images = text.withImages(window == 0 ? ImageMask.OVERRIDE : ImageMask.CLAMP_PAST);
    CpuRuntime runtime =
        new CpuRuntime(
            KernelChoice.ofThisJvm().kernels(), new CpuThreads(new ThreadBudget(1, "test")));
    AttentionBackend<?> composite =
        CompositeBackends.createCompositeBackendOrThrow(
            new FlexAttentionBackend(runtime),
            new CpuAttnBackend(runtime),
            new MMPrefixAttentionRouting().withLowering(Lowering.BOTH_WINDOWS));
    Request[] requests = new Request[REQUESTS];
    Arrays.fill(requests, Request.of(TOKENS, TOKENS, IMAGES));
    AttentionLayerSpec.Dense layer =
        AttentionLayerSpec.Dense.decoder(8, 2, 128, DType.BF16, images);
    try (Scene scene = new Scene(layer, 32, KvScales.ONE, 1)) {
      KvCacheView cache = scene.filledBy(new FlexAttentionBackend(runtime), requests);
      CommonAttentionMetadata batch = scene.batch(requests);
      TensorView q =
          scene.random(DType.BF16, 1, batch.tokens(), layer.numHeads(), layer.headSize());
      try (Side<?> lowered = Side.of(composite, scene, layer, batch, cache, q);
          Side<?> causal =
              Side.of(new CpuAttnBackend(runtime), scene, layer.withMask(text), batch, cache, q)) {
        assertThat(lowered.metadata()).isInstanceOf(CompositeMetadata.Lowered.class);
        compare(window, lowered, causal);
      }
    }
  }

  private static void compare(int window, Side<?> lowered, Side<?> causal) {
    double[] ratios = new double[ROUNDS];
    double bestLowered = Double.MAX_VALUE;
    double bestCausal = Double.MAX_VALUE;
    lowered.seconds();
    causal.seconds();
    for (int round = 0; round < ROUNDS; round++) {
      double slow = lowered.seconds();
      double fast = causal.seconds();
      ratios[round] = fast / slow;
      bestLowered = Math.min(bestLowered, slow);
      bestCausal = Math.min(bestCausal, fast);
    }
    Arrays.sort(ratios);
    double tokens = ratios[ROUNDS / 2];
    double pairs = tokens * pairs(window, IMAGES) / pairs(window);
    System.out.printf(
        Locale.ROOT,
        "window %d: lowered %.1f ms, causal %.1f ms at best; median of %d rounds: tokens/s %.3f,"
            + " visible pairs/s %.3f of causal%n",
        window,
        1e3 * bestLowered,
        1e3 * bestCausal,
        ROUNDS,
        tokens,
        pairs);
    assertThat(tokens).as("tokens per second, of causal").isGreaterThanOrEqualTo(0.85);
    assertThat(pairs).as("visible pairs per second, of causal").isGreaterThanOrEqualTo(0.92);
  }

  /** Keys that the queries of one request see. */
  private static double pairs(int window, int... images) {
    double pairs = 0;
    for (int q = 0; q < TOKENS; q++) {
      int last = q;
      for (int i = 0; i < images.length; i += 2) {
        last = q >= images[i] && q <= images[i + 1] ? images[i + 1] : last;
      }
      pairs += last - (window == 0 ? 0 : Math.max(0, q - window + 1)) + 1;
    }
    return pairs;
  }

  /** One backend with the batch built for it. */
  private record Side<M extends AttentionMetadata>(
      Scene scene,
      Workspace.Step step,
      AttentionImpl<M> impl,
      M metadata,
      KvCacheView cache,
      TensorView q,
      AttentionOutput output)
      implements AutoCloseable {

    static <M extends AttentionMetadata> Side<M> of(
        AttentionBackend<M> backend,
        Scene scene,
        AttentionLayerSpec.Dense layer,
        CommonAttentionMetadata batch,
        KvCacheView cache,
        TensorView q) {
      LayerGroup group = LayerGroup.of("layer", layer);
      WorkspacePlan plan =
          backend.workspace(group, scene.spec, new BatchLimits(64, REQUESTS * TOKENS, TOKENS));
      Workspace.Step step =
          Workspace.wrap(
                  HugePages.allocate(scene.arena, plan.totalBytes(1), WorkspacePlan.ALIGNMENT),
                  plan,
                  1)
              .openStep();
      AttentionMetadataBuilder<M> builder = backend.createBuilder(group, scene.spec);
      M metadata = builder.build(new StepContext(scene.launch, step, 0), group, batch);
      return new Side<>(
          scene,
          step,
          backend.createImpl(layer, scene.parameters, scene.spec),
          metadata,
          cache,
          q,
          scene.output(batch.tokens()));
    }

    double seconds() {
      long start = THREADS.getCurrentThreadCpuTime();
      impl.forward(scene.launch, q, cache, metadata, output);
      return 1e-9 * (THREADS.getCurrentThreadCpuTime() - start);
    }

    @Override
    public void close() {
      impl.close();
      step.close();
    }
  }
}
