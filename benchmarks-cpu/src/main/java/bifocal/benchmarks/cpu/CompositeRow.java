package bifocal.benchmarks.cpu;

import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.control.Option;
import java.util.function.Function;

/**
 * One step of a trace through a composite on each of its routes, and through its children.
 *
 * @param step number of the step in its trace
 * @param queryTokens of all its requests
 * @param imageQuery whether a query lies in an image, so that only the general child is right
 * @param microseconds medians by contender, those that can do the step
 * @param overLowered each contender's time over that of the lowered route, medians over the rounds
 * @param wholeOverSplit likewise the time of the whole batch over that of the split one
 */
record CompositeRow(
    int step,
    int requests,
    int queryTokens,
    boolean imageQuery,
    int threads,
    Map<String, Double> microseconds,
    Map<String, Double> overLowered,
    double wholeOverSplit) {
  static final String NAME = "composite on a trace";
  static final String LOWERED = "lowered";
  static final String SPLIT = "split";
  static final String WHOLE_BATCH = "whole batch";
  static final Seq<String> ROUTES = io.vavr.collection.List.of(LOWERED, SPLIT, WHOLE_BATCH);

  Option<Double> time(String contender) {
    return microseconds.get(contender);
  }

  /** The best child's time over the composite's; the best is the one with the lowest median. */
  Option<Double> overBestChild() {
    return microseconds
        .filterKeys(name -> !ROUTES.contains(name))
        .minBy(child -> child._2)
        .flatMap(best -> overLowered.get(best._1));
  }

  /** A contender's time over that of the lowered route, over all of the rows that hold it. */
  static Option<Double> overLowered(Seq<CompositeRow> rows, String contender) {
    return ratio(rows, contender, row -> row.overLowered().get(contender));
  }

  /** The time of whole batches over that of split ones, over all of the rows. */
  static Option<Double> wholeOverSplit(Seq<CompositeRow> rows) {
    return ratio(rows, WHOLE_BATCH, row -> Option.some(row.wholeOverSplit()));
  }

  /** Each row weighs what the contender takes. */
  private static Option<Double> ratio(
      Seq<CompositeRow> rows, String contender, Function<CompositeRow, Option<Double>> ofRow) {
    double time = 0;
    double others = 0;
    for (CompositeRow row : rows.filter(row -> ofRow.apply(row).isDefined())) {
      double own = row.time(contender).getOrElse(0.0);
      time += own;
      others += own / ofRow.apply(row).get();
    }
    return Option.when(others > 0, time / others);
  }
}
