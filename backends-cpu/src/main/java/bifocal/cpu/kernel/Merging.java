package bifocal.cpu.kernel;

import static bifocal.cpu.raw.RawMemory.readFloat;
import static bifocal.cpu.raw.RawMemory.writeFloat;

import bifocal.cpu.cache.Numbers;

/** Joins the partial results of one request and KV head. */
final class Merging {
  private Merging() {}

  static void merge(AttendParams params, long item) {
    int group = params.groupSize();
    int queries = MergeItem.queryCount(item);
    for (int i = 0; i < queries; i++) {
      for (int g = 0; g < group; g++) {
        row(
            params,
            MergeItem.queryFirst(item) + i,
            MergeItem.kvHead(item) * group + g,
            MergeItem.partialRow(item) + (long) i * group + g,
            (long) queries * group,
            MergeItem.splits(item));
      }
    }
  }

  private static void row(
      AttendParams params, int token, int head, long first, long rowsPerSplit, int splits) {
    float largest = params.hasSinks() ? params.sink(head) : Float.NEGATIVE_INFINITY;
    for (int s = 0; s < splits; s++) {
      largest = Math.max(largest, readFloat(params.partialLse(first + s * rowsPerSplit)));
    }
    boolean empty = largest == Float.NEGATIVE_INFINITY;
    double sum = params.hasSinks() && !empty ? Math.exp((double) params.sink(head) - largest) : 0;
    // The partial results are scratch: from here on their LSE is their weight.
    for (int s = 0; s < splits; s++) {
      long at = params.partialLse(first + s * rowsPerSplit);
      double weight = empty ? 0 : Math.exp((double) readFloat(at) - largest);
      writeFloat(at, (float) weight);
      sum += weight;
    }
    int headSizeV = CacheParams.headSizeV(params.cache());
    long out = params.outRow(token) + (long) head * headSizeV * params.outType().bytes();
    for (int d = 0; d < headSizeV; d++) {
      float value = empty ? 0 : (float) (sum(params, first, rowsPerSplit, splits, d) / sum);
      Numbers.write(params.outType(), out + (long) d * params.outType().bytes(), value);
    }
    if (params.wantsLse()) {
      float lse = empty ? largest : (float) (largest + Math.log(sum));
      writeFloat(params.lseRow(token) + 4L * head, lse);
    }
  }

  private static double sum(AttendParams params, long first, long rowsPerSplit, int splits, int d) {
    int headSizeV = CacheParams.headSizeV(params.cache());
    double sum = 0;
    for (int s = 0; s < splits; s++) {
      long row = first + s * rowsPerSplit;
      float weight = readFloat(params.partialLse(row));
      // A part without visible keys has weight 0 and whatever numbers.
      sum += weight == 0 ? 0 : weight * readFloat(params.partialOut(row, headSizeV) + 4L * d);
    }
    return sum;
  }
}
