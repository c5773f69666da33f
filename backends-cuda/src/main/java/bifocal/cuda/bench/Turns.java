package bifocal.cuda.bench;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.memory.CudaMemory;
import io.vavr.collection.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * One work by two backends, which took turns.
 *
 * @param work what
 * @param first name of the first
 * @param second name of the second
 * @param firstMs its median milliseconds
 * @param secondMs its median milliseconds
 */
record Turns(GpuWork work, String first, String second, double firstMs, double secondMs) {

  /**
   * A backend with a name.
   *
   * @param <M> metadata of the backend
   */
  record Named<M extends AttentionMetadata>(String name, AttentionBackend<M> backend) {}

  static <A extends AttentionMetadata, B extends AttentionMetadata> Turns measure(
      Named<A> first,
      Named<B> second,
      GpuWork work,
      CudaLaunchContext launch,
      CudaMemory memory,
      RandomNumbers numbers,
      GpuTimer timer) {
    try (GpuScene<A> a = new GpuScene<>(first.backend(), work, launch, memory, numbers);
        GpuScene<B> b = new GpuScene<>(second.backend(), work, launch, memory, numbers)) {
      SceneCheck.run(a);
      SceneCheck.run(b);
      double[] medians = timer.medians(a::forward, b::forward);
      return new Turns(work, first.name(), second.name(), medians[0], medians[1]);
    }
  }

  /** How many times as fast the first is. */
  double ratio() {
    return secondMs / firstMs;
  }

  Map<String, Object> json() {
    return LinkedHashMap.<String, Object>of("work", work.title())
        .put("first", first)
        .put("second", second)
        .put("first_ms", firstMs)
        .put("second_ms", secondMs)
        .put("ratio", ratio())
        .toJavaMap();
  }

  String line() {
    return String.format(
        Locale.ROOT,
        "%-44s %s %.4f ms, %s %.4f ms: %.3f times as fast",
        work.title(),
        first,
        firstMs,
        second,
        secondMs,
        ratio());
  }
}
