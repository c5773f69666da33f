package bifocal.benchmarks.cpu;

import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.control.Option;

/**
 * One step of a trace through a composite on each of its routes, and through its children.
 *
 * @param step number of the step in its trace
 * @param queryTokens of all its requests
 * @param imageQuery whether a query lies in an image, so that only the general child is right
 * @param microseconds medians by contender, those that can do the step
 */
record CompositeRow(
    int step,
    int requests,
    int queryTokens,
    boolean imageQuery,
    int threads,
    Map<String, Double> microseconds) {
  static final String NAME = "composite on a trace";
  static final String LOWERED = "lowered";
  static final String SPLIT = "split";
  static final String WHOLE_BATCH = "whole batch";
  static final Seq<String> ROUTES = io.vavr.collection.List.of(LOWERED, SPLIT, WHOLE_BATCH);

  Option<Double> time(String contender) {
    return microseconds.get(contender);
  }

  /** The best child's time over the composite's. */
  Option<Double> overBestChild() {
    return microseconds
        .filterKeys(name -> !ROUTES.contains(name))
        .values()
        .min()
        .flatMap(best -> time(LOWERED).map(own -> best / own));
  }

  /** Time of one contender over another's, over all of the rows that hold both. */
  static Option<Double> ratio(Seq<CompositeRow> rows, String slower, String faster) {
    Seq<CompositeRow> both =
        rows.filter(row -> row.time(slower).isDefined() && row.time(faster).isDefined());
    double time = both.map(row -> row.time(faster).get()).sum().doubleValue();
    return Option.when(
        time > 0, () -> both.map(row -> row.time(slower).get()).sum().doubleValue() / time);
  }
}
