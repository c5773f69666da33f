package bifocal.composite;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.route.Child;
import bifocal.core.route.LoweredRuns;
import bifocal.core.route.RequestRoutes;
import io.vavr.control.Option;

/**
 * What one child gets of a divided batch: those of its requests that have queries, each in one
 * piece or in runs.
 *
 * @param requests requests and runs
 * @param queryTokens query tokens of all of them
 */
record BatchCut(CommonAttentionMetadata.Cut cut, int requests, int queryTokens) {

  static BatchCut of(
      CommonAttentionMetadata batch, RequestRoutes routes, Child child, Option<LoweredRuns> runs) {
    int requests = 0;
    for (int r = 0; r < batch.live(); r++) {
      requests += takes(batch, routes, child, r) ? Math.max(1, runCount(runs, r)) : 0;
    }
    CommonAttentionMetadata.Cut cut = batch.cut(requests);
    for (int r = 0; r < batch.live(); r++) {
      if (takes(batch, routes, child, r)) {
        add(cut, runs, r);
      }
    }
    return new BatchCut(cut, requests, queryTokens(batch, routes, child));
  }

  /** Query tokens that a child gets of a batch. */
  static int queryTokens(CommonAttentionMetadata batch, RequestRoutes routes, Child child) {
    int tokens = 0;
    for (int r = 0; r < batch.live(); r++) {
      tokens += routes.child(r) == child ? batch.queryLen(r) : 0;
    }
    return tokens;
  }

  private static boolean takes(
      CommonAttentionMetadata batch, RequestRoutes routes, Child child, int request) {
    return routes.child(request) == child && batch.queryLen(request) > 0;
  }

  private static int runCount(Option<LoweredRuns> runs, int request) {
    return runs.isDefined() ? runs.get().count(request) : 0;
  }

  private static void add(CommonAttentionMetadata.Cut cut, Option<LoweredRuns> runs, int request) {
    if (runCount(runs, request) == 0) {
      cut.request(request);
      return;
    }
    LoweredRuns all = runs.get();
    for (int i = 0; i < all.count(request); i++) {
      cut.run(request, all.first(request, i), all.last(request, i), all.rightWindow(request, i));
    }
  }
}
