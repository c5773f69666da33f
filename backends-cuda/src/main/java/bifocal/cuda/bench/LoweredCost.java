package bifocal.cuda.bench;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.memory.CudaMemory;
import io.vavr.collection.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;

/**
 * A batch with images, computed as runs by the fast child, beside the same batch without images;
 * both were timed in turns.
 *
 * @param work with images
 * @param by who computed both, empty for the usual child
 * @param lowered median milliseconds
 * @param causal median milliseconds without images
 */
record LoweredCost(GpuWork work, String by, double lowered, double causal) {

  static <A extends AttentionMetadata, B extends AttentionMetadata> LoweredCost measure(
      String by,
      AttentionBackend<A> pair,
      AttentionBackend<B> fast,
      GpuWork work,
      CudaLaunchContext launch,
      CudaMemory memory,
      RandomNumbers numbers,
      GpuTimer timer,
      Consumer<String> progress) {
    try (GpuScene<A> images = new GpuScene<>(pair, work, launch, memory, numbers);
        GpuScene<B> plain = new GpuScene<>(fast, work.withoutImages(), launch, memory, numbers)) {
      double[] medians = timer.medians(images::forward, plain::forward);
      LoweredCost cost = new LoweredCost(work, by, medians[0], medians[1]);
      progress.accept(cost.line());
      return cost;
    }
  }

  /** Visible pairs per second, as a part of those without images. */
  double pairsRatio() {
    return work.pairs() / lowered / (work.withoutImages().pairs() / causal);
  }

  /** Tokens per second, as a part of those without images. */
  double tokensRatio() {
    return causal / lowered;
  }

  Map<String, Object> json() {
    return LinkedHashMap.<String, Object>of("work", work.title())
        .put("by", by.strip())
        .put("lowered_ms", lowered)
        .put("causal_ms", causal)
        .put("pairs_ratio", pairsRatio())
        .put("tokens_ratio", tokensRatio())
        .toJavaMap();
  }

  String line() {
    return String.format(
        Locale.ROOT,
        "%-44s lowered%s %.4f ms, without images %.4f ms: %.2f of its pairs/s, %.2f of its tokens/s",
        work.title(),
        by,
        lowered,
        causal,
        pairsRatio(),
        tokensRatio());
  }
}
