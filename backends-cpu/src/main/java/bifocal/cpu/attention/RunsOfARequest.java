package bifocal.cpu.attention;

import bifocal.core.batch.CommonAttentionMetadata;

/**
 * Finds the runs that one request was cut into. Runs that follow each other read the same blocks,
 * and intervals of keys say what each of their queries sees, so nothing asks for an item to end
 * where a run does.
 */
final class RunsOfARequest {
  private RunsOfARequest() {}

  /** Whether some of a batch's requests are runs that follow each other. */
  static boolean anyFollow(CommonAttentionMetadata batch) {
    for (int r = 1; batch.hasRuns() && r < batch.live(); r++) {
      if (follows(batch, r)) {
        return true;
      }
    }
    return false;
  }

  /** The last of the runs that follow each other from one on; itself when none follows. */
  static int last(CommonAttentionMetadata batch, int from) {
    int last = from;
    while (batch.hasRuns() && last + 1 < batch.live() && follows(batch, last + 1)) {
      last++;
    }
    return last;
  }

  /** Queries of a request, or of runs that follow each other. */
  static int queries(CommonAttentionMetadata batch, int first, int last) {
    int queries = 0;
    for (int run = first; run <= last; run++) {
      queries += batch.queryLen(run);
    }
    return queries;
  }

  private static boolean follows(CommonAttentionMetadata batch, int run) {
    int before = run - 1;
    return !batch.independentKeys()
        && batch.queryLen(before) > 0
        && batch.queryLen(run) > 0
        && batch.blockTableRow(run) == batch.blockTableRow(before)
        && batch.firstPosition(run) == batch.seqLen(before)
        && batch.queryStart(run) == batch.queryStart(before) + batch.queryLen(before);
  }
}
