package bifocal.cli.route;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.route.Child;
import bifocal.core.route.LoweredRuns;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.Route;
import bifocal.core.route.RouteReason;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.Locale;

/**
 * A route as the command writes it.
 *
 * @param route {@code A}, {@code B}, {@code SPLIT} or {@code LOWERED}
 * @param requests one entry per live request
 * @param graph whether a captured decode graph may be replayed for the batch
 */
public record RouteReport(String route, Seq<Request> requests, String graph) {

  /**
   * Where one request goes.
   *
   * @param runs how its queries are cut into runs, absent when it goes whole
   */
  public record Request(
      int index, Child child, RouteReason code, String reason, Option<Seq<Run>> runs) {}

  /**
   * Queries {@code first .. last} of a request, in absolute positions, as a request of their own.
   *
   * @param causal whether its queries see no later key; otherwise all up to the last, or as far as
   *     the layer's mask lets them
   * @param seqLen its keys
   */
  public record Run(int first, int last, boolean causal, int seqLen) {}

  public static RouteReport of(Route route, CommonAttentionMetadata batch) {
    return new RouteReport(
        route.label(),
        Vector.range(0, batch.live()).map(r -> request(route, r)),
        replayable(route, batch) ? "replayable" : "eager");
  }

  private static boolean replayable(Route route, CommonAttentionMetadata batch) {
    boolean singleQueries = batch.live() > 0;
    for (int r = 0; r < batch.live(); r++) {
      singleQueries &= batch.queryLen(r) == 1;
    }
    return route instanceof Route.ToChildB && singleQueries;
  }

  private static Request request(Route route, int r) {
    RequestRoutes requests = route.requests();
    return new Request(
        r,
        requests.child(r),
        requests.reason(r),
        requests.text(r),
        runs(route).filter(runs -> runs.count(r) > 0).map(runs -> runs(runs, r)));
  }

  private static Option<LoweredRuns> runs(Route route) {
    return switch (route) {
      case Route.ToChildA a -> Option.none();
      case Route.ToChildB b -> Option.none();
      case Route.SplitByRequest split -> split.runs();
      case Route.Lowered lowered -> Option.some(lowered.runs());
    };
  }

  private static Seq<Run> runs(LoweredRuns runs, int r) {
    return Vector.range(0, runs.count(r))
        .map(
            i ->
                new Run(runs.first(r, i), runs.last(r, i), runs.causal(r, i), runs.last(r, i) + 1));
  }

  /** The report for a person. */
  public String text() {
    String line = "%7s  %-5s  %-23s  %s%n";
    StringBuilder text = new StringBuilder();
    text.append("route ").append(route).append(", graph ").append(graph).append('\n');
    text.append(String.format(Locale.ROOT, line, "request", "child", "code", "reason"));
    for (Request request : requests) {
      text.append(
          String.format(
              Locale.ROOT,
              line,
              request.index(),
              request.child(),
              request.code(),
              request.reason()));
      for (Run run : request.runs().getOrElse(Vector.empty())) {
        String kind = run.causal() ? "causal" : "non-causal";
        String queries = "queries " + run.first() + ".." + run.last();
        text.append(String.format(Locale.ROOT, line, "", "", queries, kind));
      }
    }
    return text.toString();
  }
}
