package bifocal.cpu.kernel;

/** Where the intermediate numbers of one work item lie, each part aligned to 64 bytes. */
final class TileScratch {
  private static final int WIDE_TILE = 512;
  private static final int SUB_BLOCK = 16;
  private static final int LARGEST_PANEL = 64;

  /** Queries in fp32, the scale multiplied in. */
  long queries;

  long queryStride;

  /** Scores, then weights, of one tile of keys. */
  long scores;

  long scoreStride;

  /** Weighted sums of values. */
  long sums;

  long sumStride;

  /** Per row: running maximum and running sum. */
  long states;

  /** Per query token: first and last visible key. */
  long intervals;

  /** Per block of rows: first and last visible key of any of them. */
  long blockIntervals;

  /** One panel of keys in fp32. */
  long keys;

  /** One tile of values in fp32. */
  long values;

  private long end;

  /**
   * Keys of a tile. It depends on the head sizes alone, so that a request's numbers do not depend
   * on what else is in the batch.
   */
  static int tileKeys(int headSize, int headSizeV) {
    int largest = Math.max(headSize, headSizeV);
    if (largest <= 128) {
      return WIDE_TILE;
    }
    return largest <= 256 ? WIDE_TILE / 2 : WIDE_TILE / 4;
  }

  static long bytes(AttendParams params, int queryCount, TileMath math) {
    TileScratch scratch = new TileScratch();
    scratch.lay(0, params, queryCount, math);
    return scratch.end;
  }

  void lay(long base, AttendParams params, int queryCount, TileMath math) {
    int headSize = CacheParams.headSize(params.cache());
    int headSizeV = CacheParams.headSizeV(params.cache());
    int tile = tileKeys(headSize, headSizeV);
    long rows = (long) queryCount * params.groupSize() + math.rowBlock();
    end = base;
    queryStride = 4L * headSize;
    queries = take(rows * queryStride);
    scoreStride = 4L * (tile + LARGEST_PANEL);
    scores = take(rows * scoreStride);
    sumStride = align(4L * headSizeV);
    sums = take(rows * sumStride);
    states = take(8 * rows);
    intervals = take(8L * queryCount);
    blockIntervals = take(8 * rows);
    keys = take(4L * LARGEST_PANEL * headSize);
    values = take((tile + SUB_BLOCK) * sumStride);
  }

  private long take(long bytes) {
    long at = end;
    end = at + align(bytes);
    return at;
  }

  private static long align(long bytes) {
    return (bytes + 63) & -64L;
  }
}
