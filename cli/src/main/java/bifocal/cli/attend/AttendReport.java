package bifocal.cli.attend;

import bifocal.cli.route.RouteReport;
import bifocal.core.cache.KvCacheSpec;
import bifocal.reference.Agreement;
import bifocal.reference.QueryHead;
import bifocal.reference.Tolerance;
import io.vavr.collection.Seq;
import io.vavr.control.Option;
import java.util.Locale;

/**
 * What a run did.
 *
 * @param backend who ran
 * @param platform where
 * @param conditions what computed, and on how many threads
 * @param route where the batch went; absent when the backend does not route
 * @param cache the cache's layout, type and block size
 * @param milliseconds how long it took
 * @param check how it agrees with the reference, if that was asked for
 * @param out the file that was written
 */
record AttendReport(
    String backend,
    String platform,
    Seq<Condition> conditions,
    Option<RouteReport> route,
    Cache cache,
    Milliseconds milliseconds,
    Option<Check> check,
    String out) {

  /** One thing that the time depends on. */
  record Condition(String topic, String seen) {}

  /** The cache. */
  record Cache(String layout, String dtype, int blockSize) {
    static Cache of(KvCacheSpec spec) {
      return new Cache(spec.layout().name(), spec.dtype().label(), spec.blockSize());
    }
  }

  /** Durations of the three parts of a step. */
  record Milliseconds(double writeKv, double build, double forward) {
    static Milliseconds of(AttendRun.Times times) {
      return new Milliseconds(times.write() / 1e6, times.build() / 1e6, times.forward() / 1e6);
    }
  }

  /** Where the worst error is. */
  record Place(int queryToken, int head) {
    static Place of(QueryHead at) {
      return new Place(at.queryToken(), at.head());
    }
  }

  /**
   * Agreement with the reference.
   *
   * @param compared query tokens times heads
   * @param error worst error of an output vector
   * @param lseError worst error of a log-sum-exp; absent when the backend returns none
   */
  record Check(
      boolean passed,
      int compared,
      double error,
      double bound,
      Option<Place> at,
      Option<Double> lseError,
      double lseBound,
      Option<Place> lseAt) {
    static Check of(Agreement agreement, Tolerance tolerance, boolean lse) {
      return new Check(
          agreement.within(tolerance),
          agreement.compared(),
          agreement.error(),
          tolerance.out(),
          agreement.at().map(Place::of),
          Option.when(lse, agreement.lseError()),
          tolerance.lse(),
          agreement.lseAt().map(Place::of));
    }

    private String text() {
      return String.format(
          Locale.ROOT,
          "check %s: %d query tokens x heads against the reference%n"
              + "  worst error     %.3e%s, bound %.1e%n  worst LSE error %s%n",
          passed ? "passed" : "FAILED",
          compared,
          error,
          place(at),
          bound,
          lseError
              .map(e -> String.format(Locale.ROOT, "%.3e%s, bound %.1e", e, place(lseAt), lseBound))
              .getOrElse("not compared: the backend returns no log-sum-exp"));
    }

    private static String place(Option<Place> at) {
      return at.map(p -> " at query token " + p.queryToken() + ", head " + p.head()).getOrElse("");
    }
  }

  /** The report for a person. */
  String text() {
    return String.format(
            Locale.ROOT,
            "backend %s on %s, cache %s %s in blocks of %d%n",
            backend,
            platform,
            cache.layout(),
            cache.dtype(),
            cache.blockSize())
        + conditions.map(c -> c.topic() + " " + c.seen() + "\n").mkString()
        + route.map(RouteReport::text).getOrElse("route none: the backend does not route\n")
        + String.format(
            Locale.ROOT,
            "time %.3f ms, first run, nothing warmed up (write KV %.3f ms, build %.3f ms)%n",
            milliseconds.forward(),
            milliseconds.writeKv(),
            milliseconds.build())
        + check.map(Check::text).getOrElse("")
        + "wrote "
        + out
        + "\n";
  }
}
