package bifocal.benchmarks.cpu;

import bifocal.benchmarks.cpu.Interleaved.Entrant;
import bifocal.benchmarks.cpu.Interleaved.Turns;
import bifocal.benchmarks.cpu.Room.Guest;
import bifocal.core.bench.BenchmarkRequest;
import bifocal.core.bench.TraceStep;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import io.vavr.Tuple;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * Measures the composite on steps of a trace: all that hold an image query, and as many of the
 * others, evenly chosen.
 */
final class CompositeSteps {
  private static final int ROUNDS = 61;
  private static final long PATIENCE_NANOS = 3_000_000_000L;
  private static final long SAMPLE_NANOS = 2_000_000;
  private static final Seq<Integer> THREADS = Vector.of(1, 2);
  private static final AttentionMask IMAGES = AttentionMask.CAUSAL.withImages(ImageMask.OVERRIDE);

  private CompositeSteps() {}

  static Seq<CompositeRow> measure(Contenders contenders, BenchmarkRequest request) {
    Seq<Integer> counts = THREADS.filter(n -> n <= Host.available());
    return chosen(request.trace())
        .flatMap(
            step -> {
              request.progress().accept(CompositeRow.NAME + ", step " + step.number());
              return rows(step, contenders, counts);
            });
  }

  /** Steps with an image query, and evenly as many of those without. */
  static Seq<TraceStep> chosen(Seq<TraceStep> trace) {
    Seq<TraceStep> images = trace.filter(CompositeSteps::hasImageQuery);
    Seq<TraceStep> others = trace.reject(CompositeSteps::hasImageQuery);
    int stride = Math.max(1, others.size() / Math.max(1, images.size()));
    return images
        .appendAll(
            others
                .zipWithIndex()
                .filter(pair -> pair._2 % stride == stride / 2)
                .map(pair -> pair._1))
        .sortBy(TraceStep::number);
  }

  static boolean hasImageQuery(TraceStep step) {
    return step.parts().exists(CompositeSteps::hasImageQuery);
  }

  private static boolean hasImageQuery(TraceStep.Part part) {
    int firstQuery = part.seqLen() - part.queryLen();
    return part.images()
        .grouped(2)
        .exists(image -> image.head() < part.seqLen() && image.last() >= firstQuery);
  }

  private static Work work(TraceStep step) {
    return Work.prompts(
            CompositeRow.NAME + ", step " + step.number(),
            DType.BF16,
            128,
            step.parts().map(CompositeSteps::request).toJavaArray(Work.Request[]::new))
        .withMask(IMAGES);
  }

  private static Work.Request request(TraceStep.Part part) {
    return new Work.Request(
        part.queryLen(), part.seqLen(), part.images().toJavaStream().mapToInt(i -> i).toArray());
  }

  private static Seq<CompositeRow> rows(
      TraceStep step, Contenders contenders, Seq<Integer> counts) {
    Work work = work(step);
    try (Scene scene = contenders.scene(work);
        Scene text = contenders.scene(work.withMask(AttentionMask.CAUSAL))) {
      return counts.map(
          threads -> {
            Seq<Guest> routes = contenders.routes(scene, threads);
            Seq<Guest> all =
                hasImageQuery(step)
                    ? routes
                    : routes.appendAll(contenders.children(text, threads).tail());
            return row(step, work, threads, Room.of(all));
          });
    }
  }

  private static CompositeRow row(
      TraceStep step, Work work, int threads, Seq<Contender> contenders) {
    try {
      Agreement.require(work, contenders);
      Turns turns =
          new Interleaved(threads, ROUNDS, PATIENCE_NANOS, SAMPLE_NANOS, true)
              .turns(contenders.map(c -> new Entrant(c.name(), 1, c::run)));
      Map<String, Double> rates = turns.medians();
      return new CompositeRow(
          step.number(),
          step.parts().size(),
          step.queryTokens(),
          hasImageQuery(step),
          threads,
          rates.mapValues(rate -> 1e-3 / rate),
          rates.map((name, rate) -> Tuple.of(name, turns.timeOver(name, CompositeRow.LOWERED))),
          turns.timeOver(CompositeRow.WHOLE_BATCH, CompositeRow.SPLIT));
    } finally {
      contenders.forEach(Contender::close);
    }
  }
}
