package bifocal.composite;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.route.Child;
import bifocal.core.route.LoweredRuns;
import bifocal.core.route.Route;
import bifocal.core.route.RoutingPolicy;

/** What a policy's route must keep to, so that no child is handed what it was not checked for. */
final class RouteRules {
  private RouteRules() {}

  /**
   * Requires a route that fits the batch and that the policy announced.
   *
   * @throws BifocalException {@code SHAPE_MISMATCH}, {@code INVALID_COMPOSITION} or {@code
   *     QUERY_START_INVALID}
   */
  static void require(RoutingPolicy policy, Route route, CommonAttentionMetadata batch) {
    requireEqual(policy, "requests", route.requests().size(), batch.live());
    switch (route) {
      case Route.ToChildA toA -> {}
      case Route.ToChildB toB -> {}
      case Route.SplitByRequest split -> {
        requireAnnounced(policy, split, policy.splits());
        if (split.runs().isDefined()) {
          requireAnnounced(policy, split, policy.lowers());
          requireTiles(policy, split.runs().get(), batch);
        }
      }
      case Route.Lowered lowered -> {
        requireAnnounced(policy, lowered, policy.lowers());
        requireEqual(
            policy, "requests of a lowered batch", lowered.requests().count(Child.B), batch.live());
        requireTiles(policy, lowered.runs(), batch);
      }
    }
  }

  private static void requireEqual(RoutingPolicy policy, String what, int seen, int wanted) {
    if (seen != wanted) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, what + " routed by policy " + policy.name(), seen, wanted);
    }
  }

  private static void requireAnnounced(RoutingPolicy policy, Route route, boolean announced) {
    if (!announced) {
      throw BifocalException.of(
          ErrorCode.INVALID_COMPOSITION,
          "route of policy " + policy.name(),
          route.label() + (route instanceof Route.SplitByRequest ? ", perhaps with runs" : ""),
          "a route the policy announces by splits() and lowers()");
    }
  }

  /** Runs of a request must cover its queries, one after another. */
  private static void requireTiles(
      RoutingPolicy policy, LoweredRuns runs, CommonAttentionMetadata batch) {
    requireEqual(policy, "requests with runs", runs.requests(), batch.live());
    for (int r = 0; r < batch.live(); r++) {
      if (runs.count(r) > 0) {
        requireTiles(policy, runs, batch, r);
      }
    }
  }

  private static void requireTiles(
      RoutingPolicy policy, LoweredRuns runs, CommonAttentionMetadata batch, int request) {
    int next = batch.firstPosition(request);
    for (int i = 0; i < runs.count(request); i++) {
      int last = runs.last(request, i);
      if (runs.first(request, i) != next || last < next) {
        throw refused(policy, request, runs.first(request, i), last, next);
      }
      next = last + 1;
    }
    if (next != batch.seqLen(request)) {
      throw refused(policy, request, next, next, batch.seqLen(request));
    }
  }

  private static BifocalException refused(
      RoutingPolicy policy, int request, int first, int last, int next) {
    return BifocalException.of(
        ErrorCode.QUERY_START_INVALID,
        "runs of request " + request + " by policy " + policy.name(),
        "run [" + first + "," + last + "]",
        "runs that cover each query once, the next from position " + next);
  }
}
