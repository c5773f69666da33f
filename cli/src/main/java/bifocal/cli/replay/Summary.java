package bifocal.cli.replay;

import io.vavr.collection.Seq;
import io.vavr.control.Option;

/**
 * A replay in figures; its components are the keys of the JSON result.
 *
 * @param trace what was served
 * @param model whose shapes
 * @param conditions what computed, and on how many threads and why
 * @param steps number of steps
 * @param queryTokens query tokens of all steps, counted once for all groups
 * @param imageSteps steps that hold an image query
 * @param deferrals times a request waited a step for room for its image
 * @param routes batches by group and route
 * @param reasons requests of all batches by group, child and reason
 * @param backends time of each backend
 * @param checks comparison of each backend with the reference
 * @param ratios how many times faster than each compared backend the first one was
 * @param comparable whether enough steps hold an image query for ratios to mean something
 * @param refused backends that were to be compared and are not valid, with reasons
 * @param checksums projections and norm by backend and group
 * @param agreements largest difference of a checksum from the first backend's, and its bound
 * @param shadow how a shadow agreed, absent without one
 * @param cautions what a reader must know of the trace
 * @param seconds of everything, data and checks included
 */
record Summary(
    TraceFacts trace,
    ModelFacts model,
    Seq<Condition> conditions,
    int steps,
    long queryTokens,
    int imageSteps,
    int deferrals,
    Seq<RouteCount> routes,
    Seq<ReasonCount> reasons,
    Seq<BackendTimes> backends,
    Seq<BackendChecks> checks,
    Seq<Ratio> ratios,
    boolean comparable,
    Seq<Refused> refused,
    Seq<GroupChecksum> checksums,
    Seq<Agreed> agreements,
    Option<ShadowFacts> shadow,
    Seq<String> cautions,
    double seconds) {
  /** Steps with an image query from which on ratios are printed. */
  static final int STEPS_FOR_RATIOS = 20;

  record TraceFacts(
      String name,
      String attribution,
      int firstRow,
      int requests,
      int imageRequests,
      String imageCount,
      int images,
      int imageTokens,
      int imagesLeftOut,
      long promptTokens,
      long outputTokens,
      long seed) {}

  record ModelFacts(String id, String dtype, int layersPerGroup, Seq<String> groups) {}

  record Condition(String topic, String seen) {}

  record RouteCount(String group, String route, int batches) {}

  record ReasonCount(String group, String child, String reason, int requests) {}

  record PhaseTime(String phase, int steps, double milliseconds) {}

  record KernelTime(String backend, double milliseconds) {}

  /**
   * @param seconds metadata, cache writes and attention
   * @param tokensPerSecond query tokens through all groups
   */
  record BackendTimes(
      String backend,
      double seconds,
      double buildSeconds,
      double writeSeconds,
      double forwardSeconds,
      double tokensPerSecond,
      Seq<KernelTime> byChild,
      Seq<PhaseTime> byPhase) {}

  record BackendChecks(
      String backend,
      int batches,
      int queryTokens,
      int compared,
      double worstError,
      double bound,
      boolean passed) {}

  record Ratio(String than, double ratio) {}

  record Refused(String backend, Seq<String> reasons) {}

  record GroupChecksum(String backend, String group, Seq<Double> projections, double norm) {}

  record Agreed(String backend, String group, double distance, double bound, boolean within) {}

  /**
   * How a shadow agreed with the replayed backend.
   *
   * @param batches compared, each layer counted
   * @param compared query tokens times heads
   * @param bound twice the tolerance, since each may be so far from the truth
   * @param at where the worst error is, absent when nothing differs
   * @param failures batches that the shadow could not run
   * @param recorded file with the worst request, absent when none was asked for
   */
  record ShadowFacts(
      String backend,
      int batches,
      int compared,
      double worstError,
      double bound,
      boolean within,
      Option<ShadowPlace> at,
      Seq<String> failures,
      Option<String> recorded) {}

  /**
   * One output vector.
   *
   * @param layer number in the group
   * @param request position in the workload
   * @param position of the query token in its request
   */
  record ShadowPlace(int step, String group, int layer, int request, int position, int head) {}

  /** Whether every comparison is within its bound. */
  boolean passed() {
    return checks.forAll(BackendChecks::passed)
        && agreements.forAll(Agreed::within)
        && shadow.forAll(ShadowFacts::within);
  }
}
