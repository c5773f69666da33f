package bifocal.cli.replay;

import bifocal.cli.command.JsonText;
import bifocal.cli.replay.ContinuousBatching.Scheduled;
import bifocal.cli.replay.StepRecord.Check;
import bifocal.core.route.Route;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.nio.file.Path;

/**
 * {@code steps.jsonl}: one line for each step, group and backend. The components of {@link Line}
 * are the keys, in snake case.
 */
final class StepsFile {
  private StepsFile() {}

  /**
   * One line.
   *
   * @param step number of the step, from 0
   * @param route A, B, SPLIT or LOWERED; null for a backend that does not route
   * @param phase DECODE, PREFILL or MIXED
   * @param children microseconds by kernel backend
   */
  record Line(
      int step,
      String group,
      String backend,
      Option<String> route,
      String phase,
      int queryTokens,
      boolean imageQuery,
      double buildUs,
      double writeUs,
      double forwardUs,
      Seq<ChildTime> children,
      Seq<RequestLine> requests,
      Seq<Check> checks) {}

  record ChildTime(String backend, double us) {}

  /**
   * One request of a step.
   *
   * @param request position in the workload
   * @param first position of the first query
   * @param child A or B; null for a backend that does not route
   */
  record RequestLine(
      int request,
      int first,
      int queryLen,
      int seqLen,
      Option<String> child,
      Option<String> code,
      Option<String> reason) {}

  /** Writes the file whole or not at all. */
  static void write(Path file, Seq<StepRecord> records) {
    WholeFile.write(
        file,
        out -> {
          for (StepRecord record : records) {
            out.write(JsonText.of(line(record)));
            out.write('\n');
          }
        });
  }

  private static Line line(StepRecord record) {
    return new Line(
        record.step(),
        record.group(),
        record.backend().value(),
        record.route().map(Route::label),
        record.phase().name(),
        record.queryTokens(),
        record.hasImageQuery(),
        record.buildNanos() / 1e3,
        record.writeNanos() / 1e3,
        record.forwardNanos() / 1e3,
        record
            .nanosByBackend()
            .toVector()
            .map(pair -> new ChildTime(pair._1.value(), pair._2 / 1e3)),
        Vector.range(0, record.requests().size())
            .map(r -> request(record.requests().get(r), r, record.route())),
        record.checks());
  }

  private static RequestLine request(Scheduled scheduled, int r, Option<Route> route) {
    return new RequestLine(
        scheduled.request().index(),
        scheduled.first(),
        scheduled.count(),
        scheduled.seqLen(),
        route.map(taken -> taken.requests().child(r).name()),
        route.map(taken -> taken.requests().reason(r).name()),
        route.map(taken -> taken.requests().text(r)));
  }
}
