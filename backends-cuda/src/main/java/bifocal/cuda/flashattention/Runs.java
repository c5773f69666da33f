package bifocal.cuda.flashattention;

import bifocal.core.batch.CommonAttentionMetadata;
import java.util.Arrays;
import java.util.Comparator;

/**
 * Runs of queries that one call computes, by their rows: whole requests, or parts of requests whose
 * keys end with the run. It belongs to one build.
 *
 * @param batch what they are of
 * @param requests numbers of the runs in the batch, by row
 * @param leftWindow keys that a query sees before itself, -1 when all
 * @param later whether queries see the later keys of their run
 */
record Runs(CommonAttentionMetadata batch, int[] requests, int leftWindow, boolean later) {

  static Runs of(
      CommonAttentionMetadata batch, int[] chosen, int count, int leftWindow, boolean later) {
    int[] requests =
        Arrays.stream(chosen, 0, count)
            .boxed()
            .sorted(Comparator.comparingInt(batch::queryStart))
            .mapToInt(Integer::intValue)
            .toArray();
    return new Runs(batch, requests, leftWindow, later);
  }

  int size() {
    return requests.length;
  }

  int start(int run) {
    return batch.queryStart(requests[run]);
  }

  int queries(int run) {
    return batch.queryLen(requests[run]);
  }

  int keys(int run) {
    return batch.seqLen(requests[run]);
  }

  int tableRow(int run) {
    return batch.blockTableRow(requests[run]);
  }

  /** First block with a key that some query of the run sees. */
  int firstBlock(int run, int blockSize) {
    int first = batch.firstPosition(requests[run]);
    return leftWindow < 0 ? 0 : Math.max(0, first - leftWindow) / blockSize;
  }

  /** Blocks until the run's last key. */
  int blocks(int run, int blockSize) {
    return Math.ceilDiv(keys(run), blockSize);
  }

  /** Most blocks of a run, at least one. */
  int mostBlocks(int blockSize) {
    int most = 1;
    for (int run = 0; run < size(); run++) {
      most = Math.max(most, blocks(run, blockSize));
    }
    return most;
  }
}
