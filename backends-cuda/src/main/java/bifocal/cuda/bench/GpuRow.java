package bifocal.cuda.bench;

import io.vavr.Tuple2;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.control.Option;
import java.util.Locale;

/**
 * One measured work.
 *
 * @param work what
 * @param backend which of ours
 * @param milliseconds median
 * @param error largest deviation of the outputs that were compared
 * @param peers medians of the peers, by name
 */
record GpuRow(
    GpuWork work, String backend, double milliseconds, double error, Map<String, Double> peers) {

  double speed() {
    return work.speed(milliseconds);
  }

  double tokensPerSecond() {
    return work.tokens() / milliseconds * 1e3;
  }

  double pairsPerSecond() {
    return work.pairs() / milliseconds * 1e3;
  }

  /** Speed against the fastest peer; absent without one. */
  Option<Double> ratio() {
    return peers.values().min().map(fastest -> fastest / milliseconds);
  }

  /** As the result file has it. */
  java.util.Map<String, Object> json() {
    LinkedHashMap<String, Object> ours =
        LinkedHashMap.<String, Object>of("backend", backend)
            .put("ms", milliseconds)
            .put(work.decode() ? "tbps" : "tflops", speed())
            .put("tokens_per_s", tokensPerSecond())
            .put("pairs_per_s", pairsPerSecond())
            .put("error", error);
    LinkedHashMap<String, Object> others = LinkedHashMap.empty();
    for (Tuple2<String, Double> peer : peers) {
      others =
          others.put(
              peer._1,
              LinkedHashMap.<String, Object>of("ms", peer._2)
                  .put(work.decode() ? "tbps" : "tflops", work.speed(peer._2))
                  .toJavaMap());
    }
    LinkedHashMap<String, Object> row =
        LinkedHashMap.<String, Object>of("work", work.title())
            .put("block_size", GpuWork.BLOCK_SIZE)
            .put("ours", ours.toJavaMap())
            .put("peers", others.toJavaMap());
    return ratio().map(r -> row.put("ratio", r)).getOrElse(row).toJavaMap();
  }

  /** As the best of its work. */
  java.util.Map<String, Object> best() {
    LinkedHashMap<String, Object> best =
        LinkedHashMap.<String, Object>of("work", work.title())
            .put("best_child", backend)
            .put("ms", milliseconds)
            .put(work.decode() ? "tbps" : "tflops", speed());
    return ratio().map(r -> best.put("ratio", r)).getOrElse(best).toJavaMap();
  }

  /** The same for people. */
  String bestLine() {
    return String.format(
        Locale.ROOT,
        "%-44s best child %s %.3f %s%s",
        work.title(),
        backend,
        speed(),
        work.unit(),
        ratio().map(r -> String.format(Locale.ROOT, ", ratio %.2f", r)).getOrElse(""));
  }

  /** A line for people. */
  String line() {
    StringBuilder line =
        new StringBuilder(
            String.format(
                Locale.ROOT,
                "%-44s %-22s %8.3f %-8s %8.4f ms",
                work.title(),
                backend,
                speed(),
                work.unit(),
                milliseconds));
    for (Tuple2<String, Double> peer : peers) {
      line.append(String.format(Locale.ROOT, "  %s %.3f", peer._1, work.speed(peer._2)));
    }
    ratio().forEach(r -> line.append(String.format(Locale.ROOT, "  ratio %.2f", r)));
    return line.toString();
  }
}
