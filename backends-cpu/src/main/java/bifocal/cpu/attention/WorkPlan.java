package bifocal.cpu.attention;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.cpu.kernel.MergeItem;
import bifocal.cpu.kernel.WorkItem;
import bifocal.cpu.raw.RawMemory;

/**
 * Cuts a batch into work items and orders them by cost, the dearest first, so that threads end at
 * about the same time. Two walks over the batch: one counts, one places.
 *
 * <p>How a request is cut depends on that request alone, so its numbers do not depend on the batch.
 */
final class WorkPlan {
  /** Keys from which on a decode is split over its keys. */
  static final int SPLIT_KEYS = 8192;

  /** Parts of a split at most. */
  static final int MOST_SPLITS = 8;

  private static final int SPLIT_QUERIES = 4;
  private static final int LEAST_KEYS_PER_SPLIT = 4096;
  private static final int SUB_BLOCK = 16;

  /** Two buckets per power of two. */
  private static final int BUCKETS = 128;

  private final CommonAttentionMetadata batch;
  private final KeyVisibility visibility;
  private final Shape shape;
  private final int[] buckets = new int[BUCKETS];

  private long intervals;
  private long items;
  private long merges;
  private int itemCount;
  private int mergeCount;
  private long partialRows;
  private long visiblePairs;
  private long visibleKeys;
  private boolean placing;

  /** Queries and keys of the request, or of the runs that follow each other, that is cut now. */
  private int queries;

  private int seqLen;

  /**
   * What a layer group's work looks like, whatever the batch.
   *
   * @param queryTile query tokens of an item at most
   * @param kvHeads KV heads
   * @param group query heads per KV head
   * @param partialRowLimit rows that the memory of partial results has; 0 forbids splits
   */
  record Shape(int queryTile, int kvHeads, int group, long partialRowLimit) {}

  WorkPlan(CommonAttentionMetadata batch, KeyVisibility visibility, Shape shape) {
    this.batch = batch;
    this.visibility = visibility;
    this.shape = shape;
  }

  /**
   * Counts items and merges.
   *
   * @param intervalsAt address of the first visible key of each query token followed by the last of
   *     each; 0 when windows say it
   */
  void count(long intervalsAt) {
    intervals = intervalsAt;
    placing = false;
    walk();
  }

  /** Places what was counted. */
  void place(long itemsAt, long mergesAt) {
    items = itemsAt;
    merges = mergesAt;
    int start = 0;
    for (int b = BUCKETS - 1; b >= 0; b--) {
      int count = buckets[b];
      buckets[b] = start;
      start += count;
    }
    placing = true;
    walk();
  }

  int itemCount() {
    return itemCount;
  }

  int mergeCount() {
    return mergeCount;
  }

  long partialRows() {
    return partialRows;
  }

  /** Visible pairs of query token and key, for one head. */
  long visiblePairs() {
    return visiblePairs;
  }

  /** Keys read, for one KV head. */
  long visibleKeys() {
    return visibleKeys;
  }

  /** Smallest key that a request's queries see. */
  int firstKey(int request) {
    return first(request, 0, batch.queryLen(request));
  }

  /** Largest key that a request's queries see, -1 when they see none. */
  int lastKey(int request) {
    return batch.queryLen(request) == 0 ? -1 : last(request, 0, batch.queryLen(request));
  }

  private void walk() {
    itemCount = 0;
    mergeCount = 0;
    partialRows = 0;
    visiblePairs = 0;
    visibleKeys = 0;
    int next;
    for (int first = 0; first < batch.live(); first = next) {
      int last = RunsOfARequest.last(batch, first);
      next = last + 1;
      queries = RunsOfARequest.queries(batch, first, last);
      seqLen = batch.seqLen(last);
      for (int i = 0; i < queries; i += shape.queryTile()) {
        tile(first, i, Math.min(shape.queryTile(), queries - i));
      }
    }
  }

  private void tile(int request, int from, int count) {
    int first = first(request, from, count);
    int last = last(request, from, count);
    int keys = Math.max(0, last - first + 1);
    visiblePairs += (long) keys * count;
    visibleKeys += keys;
    int begin = first / SUB_BLOCK * SUB_BLOCK;
    int perSplit = keysPerSplit(last + 1 - begin);
    int splits = Math.max(1, Math.ceilDiv(last + 1 - begin, perSplit));
    long rows = (long) splits * count * shape.group();
    boolean split = splits > 1 && partialRows + rows * shape.kvHeads() <= shape.partialRowLimit();
    for (int head = 0; head < shape.kvHeads(); head++) {
      if (!split) {
        item(request, head, from, count, keys, 0, seqLen, WorkItem.WHOLE);
        continue;
      }
      for (int s = 0; s < splits; s++) {
        int splitBegin = begin + s * perSplit;
        int splitEnd = Math.min(splitBegin + perSplit, seqLen);
        long row = partialRows + (long) s * count * shape.group();
        item(request, head, from, count, splitEnd - splitBegin, splitBegin, splitEnd, row);
      }
      merge(request, head, from, count, splits);
      partialRows += rows;
    }
  }

  private int keysPerSplit(int keys) {
    if (queries > SPLIT_QUERIES || keys <= SPLIT_KEYS) {
      return Integer.MAX_VALUE;
    }
    int perSplit = Math.ceilDiv(Math.ceilDiv(keys, MOST_SPLITS), SUB_BLOCK) * SUB_BLOCK;
    return Math.max(perSplit, LEAST_KEYS_PER_SPLIT);
  }

  private void item(
      int request, int head, int from, int count, int keys, int begin, int end, long partialRow) {
    int bucket = bucket((long) keys * count);
    if (placing) {
      long at = items + buckets[bucket]++ * WorkItem.BYTES;
      WorkItem.queries(
          at,
          batch.blockTableRow(request),
          head,
          batch.queryStart(request) + from,
          count,
          batch.firstPosition(request) + from);
      WorkItem.keys(
          at,
          seqLen,
          visibility.mask().leftWindow(),
          batch.rightWindow(request, visibility.mask()),
          begin,
          end,
          partialRow);
    } else {
      buckets[bucket]++;
    }
    itemCount++;
  }

  private void merge(int request, int head, int from, int count, int splits) {
    if (placing) {
      MergeItem.write(
          merges + mergeCount * MergeItem.BYTES,
          partialRows,
          head,
          batch.queryStart(request) + from,
          count,
          splits);
    }
    mergeCount++;
  }

  /** Smallest key that any of some query tokens sees. */
  private int first(int request, int from, int count) {
    if (intervals == 0) {
      return visibility.windowFirst((long) batch.firstPosition(request) + from);
    }
    int first = Integer.MAX_VALUE;
    for (int i = from; i < from + count; i++) {
      first = Math.min(first, RawMemory.readInt(intervals + 4L * (batch.queryStart(request) + i)));
    }
    return first;
  }

  /** Largest key that any of some query tokens sees. */
  private int last(int request, int from, int count) {
    if (intervals == 0) {
      return visibility.windowLast(
          (long) batch.firstPosition(request) + from + count - 1,
          batch.rightWindow(request, visibility.mask()),
          batch.seqLen(request));
    }
    int last = -1;
    for (int i = from; i < from + count; i++) {
      long row = (long) batch.tokens() + batch.queryStart(request) + i;
      last = Math.max(last, RawMemory.readInt(intervals + 4 * row));
    }
    return last;
  }

  private static int bucket(long cost) {
    long value = cost + 2;
    int magnitude = 63 - Long.numberOfLeadingZeros(value);
    return 2 * magnitude + (int) (value >>> (magnitude - 1) & 1);
  }
}
