package bifocal.cpu.kernel;

import static bifocal.cpu.raw.RawMemory.readFloat;
import static bifocal.cpu.raw.RawMemory.readInt;
import static bifocal.cpu.raw.RawMemory.writeFloat;
import static bifocal.cpu.raw.RawMemory.writeInt;

import bifocal.core.tensor.NarrowFloats;
import bifocal.cpu.cache.KernelType;
import bifocal.cpu.cache.Numbers;
import bifocal.cpu.raw.RawMemory;

/**
 * One work item at a time: its queries times its keys, tile of keys after tile of keys, with a
 * running softmax. An object belongs to one thread; it holds no memory, only places.
 *
 * <p>Every mask is an interval of keys per query token. Tiles begin at multiples of their size, so
 * the order of additions for a row depends on that row's own keys alone.
 */
final class Tile {
  private static final int SUB_BLOCK = 16;
  private static final int GROUPS = 4;
  private static final int COLUMNS = 64;
  private static final int VALUE_STEP = 128;

  /** From so many rows on it pays to copy fp32 values into one piece. */
  private static final int COPY_ROWS = 16;

  private static final int EMPTY_FIRST = Integer.MAX_VALUE;
  private static final int EMPTY_LAST = -1;

  private final TileMath math;
  private final TileScratch scratch = new TileScratch();
  private final long[] subBlocks = new long[SUB_BLOCK];

  private AttendParams params;
  private long cache;
  private long item;
  private KernelType type;
  private int request;
  private int kvHead;
  private int headSize;
  private int headSizeV;
  private int blockSize;
  private int group;
  private int rows;
  private int rowBlock;
  private int rowBlocks;
  private int tileKeys;
  private int first;
  private int end;
  private float softcap;
  private boolean pairs;

  Tile(TileMath math, AttendParams params) {
    this.math = math;
    this.params = params;
    this.type = KernelType.FLOAT32;
  }

  void attend(AttendParams parameters, long workItem, long memory) {
    if (WorkItem.queryCount(workItem) == 0) {
      return;
    }
    begin(parameters, workItem, memory);
    findIntervals();
    findBlockIntervals();
    for (long start = (long) first - first % tileKeys; start < end; start += tileKeys) {
      int from = Math.max((int) start, first / SUB_BLOCK * SUB_BLOCK);
      int to = (int) Math.min(start + tileKeys, end);
      scores((int) start, from, to);
      weights((int) start, from, to);
      sums((int) start, from, to);
    }
    finish();
  }

  private void begin(AttendParams parameters, long workItem, long memory) {
    params = parameters;
    cache = parameters.cache();
    item = workItem;
    type = CacheParams.type(cache);
    request = WorkItem.request(workItem);
    kvHead = WorkItem.kvHead(workItem);
    headSize = CacheParams.headSize(cache);
    headSizeV = CacheParams.headSizeV(cache);
    blockSize = CacheParams.blockSize(cache);
    group = parameters.groupSize();
    rows = WorkItem.queryCount(workItem) * group;
    rowBlock = math.rowBlock();
    rowBlocks = Math.ceilDiv(rows, rowBlock);
    tileKeys = TileScratch.tileKeys(headSize, headSizeV);
    softcap = parameters.softcap();
    pairs = math.readsPairs(type, rows) && HeadPath.WIDE.takes(headSizeV);
    scratch.lay(memory, parameters, WorkItem.queryCount(workItem), math);
    loadQueries();
    RawMemory.zero(scratch.sums, rowBlocks * rowBlock * scratch.sumStride);
    for (int r = 0; r < rows; r++) {
      writeFloat(scratch.states + 8L * r, Float.NEGATIVE_INFINITY);
      writeFloat(scratch.states + 8L * r + 4, 0);
    }
  }

  private void loadQueries() {
    KernelType queryType = params.queryType();
    float factor = params.scale() * CacheParams.keyScale(cache, kvHead);
    int queryFirst = WorkItem.queryFirst(item);
    for (int r = 0; r < rows; r++) {
      long head = (long) kvHead * group + r % group;
      long from = params.queryRow(queryFirst + r / group) + head * headSize * queryType.bytes();
      long to = scratch.queries + r * scratch.queryStride;
      load(queryType, from, to, headSize, factor);
    }
    long padding = (long) rowBlocks * rowBlock - rows;
    RawMemory.zero(scratch.queries + rows * scratch.queryStride, padding * scratch.queryStride);
  }

  private static void load(KernelType from, long in, long out, int count, float factor) {
    switch (from) {
      case FLOAT32 -> {
        for (int d = 0; d < count; d++) {
          writeFloat(out + 4L * d, readFloat(in + 4L * d) * factor);
        }
      }
      case BFLOAT16 -> {
        for (int d = 0; d < count; d++) {
          writeFloat(
              out + 4L * d, NarrowFloats.fromBf16(RawMemory.readShort(in + 2L * d)) * factor);
        }
      }
      case FLOAT16, FLOAT8_E4M3, FLOAT8_E5M2, INT8_PER_TOKEN_HEAD, FLOAT8_PER_TOKEN_HEAD -> {
        for (int d = 0; d < count; d++) {
          writeFloat(out + 4L * d, Numbers.read(from, in + (long) d * from.bytes()) * factor);
        }
      }
    }
  }

  /** Finds each query token's visible keys, and the keys that any of them sees. */
  private void findIntervals() {
    first = EMPTY_FIRST;
    end = 0;
    int keyBegin = WorkItem.keyBegin(item);
    int keyLast = Math.min(WorkItem.keyEnd(item), WorkItem.keyLen(item)) - 1;
    for (int i = 0; i < WorkItem.queryCount(item); i++) {
      int from = Math.max(visibleFirst(i), keyBegin);
      int to = Math.min(visibleLast(i), keyLast);
      if (from > to) {
        from = EMPTY_FIRST;
        to = EMPTY_LAST;
      }
      writeInt(scratch.intervals + 8L * i, from);
      writeInt(scratch.intervals + 8L * i + 4, to);
      first = Math.min(first, from);
      end = Math.max(end, to + 1);
    }
    if (end == 0) {
      first = 0;
    }
  }

  private int visibleFirst(int i) {
    if (params.hasIntervals()) {
      return params.keyFirst(WorkItem.queryFirst(item) + i);
    }
    int left = WorkItem.leftWindow(item);
    return left < 0 ? 0 : (int) Math.max(0, (long) WorkItem.position(item) + i - left);
  }

  private int visibleLast(int i) {
    if (params.hasIntervals()) {
      return params.keyLast(WorkItem.queryFirst(item) + i);
    }
    int right = WorkItem.rightWindow(item);
    return right < 0
        ? Integer.MAX_VALUE
        : (int) Math.min(Integer.MAX_VALUE, (long) WorkItem.position(item) + i + right);
  }

  private void findBlockIntervals() {
    for (int b = 0; b < rowBlocks; b++) {
      int from = EMPTY_FIRST;
      int to = EMPTY_LAST;
      int lastRow = Math.min((b + 1) * rowBlock, rows) - 1;
      for (int i = b * rowBlock / group; i <= lastRow / group; i++) {
        from = Math.min(from, tokenFirst(i));
        to = Math.max(to, tokenLast(i));
      }
      writeInt(scratch.blockIntervals + 8L * b, from);
      writeInt(scratch.blockIntervals + 8L * b + 4, to);
    }
  }

  private int tokenFirst(int i) {
    return readInt(scratch.intervals + 8L * i);
  }

  private int tokenLast(int i) {
    return readInt(scratch.intervals + 8L * i + 4);
  }

  private int blockFirst(int b) {
    return readInt(scratch.blockIntervals + 8L * b);
  }

  private int blockLast(int b) {
    return readInt(scratch.blockIntervals + 8L * b + 4);
  }

  private int rowsOf(int b) {
    return Math.min(rowBlock, rows - b * rowBlock);
  }

  /** Scores of keys {@code from .. to - 1}, at their distance from the tile's start. */
  private void scores(int start, int from, int to) {
    int lanes = math.lanes();
    int panel = GROUPS * lanes;
    for (int key = from; key < to; key += panel) {
      boolean found = false;
      for (int b = 0; b < rowBlocks; b++) {
        if (blockFirst(b) >= key + panel || blockLast(b) < key) {
          continue;
        }
        if (!found) {
          findSubBlocks(key, to, panel);
          found = true;
        }
        blockScores(b, lanes, start, key);
      }
    }
  }

  private void blockScores(int b, int lanes, int start, int key) {
    long queries = scratch.queries + (long) b * rowBlock * scratch.queryStride;
    long scores = scratch.scores + (long) b * rowBlock * scratch.scoreStride + 4L * (key - start);
    if (pairs) {
      math.pairScores(
          queries,
          scratch.queryStride,
          rowsOf(b),
          lane(0, lanes),
          lane(1, lanes),
          lane(2, lanes),
          lane(3, lanes),
          headSize,
          scores,
          scratch.scoreStride);
    } else {
      math.scores(
          queries,
          scratch.queryStride,
          rowsOf(b),
          lane(0, lanes),
          lane(1, lanes),
          lane(2, lanes),
          lane(3, lanes),
          headSize,
          scores,
          scratch.scoreStride);
    }
  }

  private long lane(int index, int lanes) {
    int key = index * lanes;
    return subBlocks[key / SUB_BLOCK] + 4L * (key % SUB_BLOCK);
  }

  /** Finds, and where needed unpacks, the sub-blocks of a panel; none is read beyond the keys. */
  private void findSubBlocks(int key, int to, int panel) {
    for (int s = 0; s * SUB_BLOCK < panel; s++) {
      int at = key + s * SUB_BLOCK;
      if (at >= to) {
        subBlocks[s] = subBlocks[0];
        continue;
      }
      int place = at % blockSize;
      long part = CacheParams.keys(cache, params.block(request, at / blockSize), kvHead);
      long packed = part + (long) place * headSize * type.bytes();
      if (type == KernelType.FLOAT32 || pairs) {
        subBlocks[s] = packed;
      } else {
        long unpacked = scratch.keys + 4L * s * SUB_BLOCK * headSize;
        long scales = part + (long) blockSize * headSize * type.bytes() + 4L * place;
        math.keys(type, packed, scales, headSize, unpacked);
        subBlocks[s] = unpacked;
      }
    }
  }

  /** Turns the tile's scores into weights. */
  private void weights(int start, int from, int to) {
    for (int b = 0; b < rowBlocks; b++) {
      int zeroFrom = Math.max(blockFirst(b), from);
      int zeroTo = Math.min(blockLast(b) + 1, to);
      if (zeroFrom >= zeroTo) {
        continue;
      }
      for (int r = b * rowBlock; r < b * rowBlock + rowsOf(b); r++) {
        int i = r / group;
        long row = scratch.scores + r * scratch.scoreStride;
        int visibleFrom = Math.max(tokenFirst(i), from);
        int visibleTo = Math.min(tokenLast(i) + 1, to);
        if (visibleFrom >= visibleTo) {
          RawMemory.fillFloats(row + 4L * (zeroFrom - start), zeroTo - zeroFrom, 0);
        } else {
          rowWeights(
              r,
              row,
              visibleFrom - start,
              visibleTo - start,
              zeroFrom - start,
              zeroTo - start,
              start);
        }
      }
    }
  }

  private void rowWeights(int r, long row, int from, int to, int zeroFrom, int zeroTo, int start) {
    if (softcap > 0) {
      math.softcap(row, from, to, softcap);
    }
    if (params.hasAlibi()) {
      int position = WorkItem.position(item) + r / group;
      math.alibi(row, from, to, params.alibiSlope(kvHead * group + r % group), start - position);
    }
    float factor = math.weights(row, from, to, zeroFrom, zeroTo, scratch.states + 8L * r);
    if (factor != 1) {
      math.scale(scratch.sums + r * scratch.sumStride, (int) (scratch.sumStride / 4), factor);
    }
  }

  /** Adds the tile's weighted values. */
  private void sums(int start, int from, int to) {
    if (pairs) {
      pairSums(start, Math.max(from, blockFirst(0)), Math.min(to, blockLast(0) + 1));
      return;
    }
    if (type == KernelType.FLOAT32 && rows < COPY_ROWS && HeadPath.WIDE.takes(headSizeV)) {
      for (int key = from; key < to; ) {
        int run = Math.min(blockSize - key % blockSize, to - key);
        long part = CacheParams.values(cache, params.block(request, key / blockSize), kvHead);
        long row = part + (long) (key % blockSize) * headSizeV * 4;
        addValues(start, key, key + run, row, 4L * headSizeV);
        key += run;
      }
      return;
    }
    for (int key = from; key < to; key += SUB_BLOCK) {
      unpackValues(key, Math.min(SUB_BLOCK, to - key), from);
    }
    for (int key = from; key < to; key += VALUE_STEP) {
      long row = scratch.values + (key - from) * scratch.sumStride;
      addValues(start, key, Math.min(key + VALUE_STEP, to), row, scratch.sumStride);
    }
  }

  /**
   * Adds weighted values straight from the cache, for the one block of rows there is. A token whose
   * pair is not wholly visible goes by itself, because its neighbour may be anything.
   */
  private void pairSums(int start, int from, int to) {
    for (int key = from; key < to; ) {
      int end = Math.min(key + blockSize - key % blockSize, to);
      if (key % 2 != 0 || key + 1 == end) {
        singleSum(start, key);
        key++;
        continue;
      }
      int count = (end - key) / 2;
      addPairs(start, key, count);
      key += 2 * count;
    }
  }

  private void addPairs(int start, int key, int count) {
    long part = CacheParams.values(cache, params.block(request, key / blockSize), kvHead);
    long row = part + (long) (key % blockSize) * headSizeV * type.bytes();
    for (int column = 0; column < headSizeV; column += COLUMNS) {
      math.accumulatePairs(
          scratch.sums + 4L * column,
          scratch.sumStride,
          rows,
          scratch.scores + 4L * (key - start),
          scratch.scoreStride,
          row + 4L * column,
          4L * headSizeV,
          count,
          Math.min(COLUMNS, headSizeV - column));
    }
  }

  private void singleSum(int start, int key) {
    int even = key - key % 2;
    unpackValues(even, 2, even);
    addValues(
        start, key, key + 1, scratch.values + (key - even) * scratch.sumStride, scratch.sumStride);
  }

  private void unpackValues(int key, int count, int from) {
    int place = key % blockSize;
    long part = CacheParams.values(cache, params.block(request, key / blockSize), kvHead);
    math.values(
        type,
        part + (long) place * headSizeV * type.bytes(),
        part + (long) blockSize * headSizeV * type.bytes() + 4L * place,
        count,
        headSizeV,
        scratch.values + (key - from) * scratch.sumStride,
        scratch.sumStride);
  }

  /** Adds values of keys {@code from .. to - 1}, whose rows begin at {@code values}. */
  private void addValues(int start, int from, int to, long values, long valueStride) {
    int width = (int) (scratch.sumStride / 4);
    for (int column = 0; column < width; column += COLUMNS) {
      int columns = Math.min(COLUMNS, width - column);
      for (int b = 0; b < rowBlocks; b++) {
        int first = Math.max(blockFirst(b), from);
        int count = Math.min(blockLast(b) + 1, to) - first;
        if (count <= 0) {
          continue;
        }
        long row = (long) b * rowBlock;
        math.accumulate(
            scratch.sums + row * scratch.sumStride + 4L * column,
            scratch.sumStride,
            rowsOf(b),
            scratch.scores + row * scratch.scoreStride + 4L * (first - start),
            scratch.scoreStride,
            values + (first - from) * valueStride + 4L * column,
            valueStride,
            count,
            columns);
      }
    }
  }

  private void finish() {
    long partialRow = WorkItem.partialRow(item);
    for (int r = 0; r < rows; r++) {
      float largest = readFloat(scratch.states + 8L * r);
      float sum = readFloat(scratch.states + 8L * r + 4);
      long sums = scratch.sums + r * scratch.sumStride;
      if (partialRow >= 0) {
        finishPartial(partialRow + r, sums, largest, sum);
      } else {
        finishWhole(r, sums, largest, sum);
      }
    }
  }

  private void finishPartial(long row, long sums, float largest, float sum) {
    float factor = sum == 0 ? 0 : CacheParams.valueScale(cache, kvHead) / sum;
    store(KernelType.FLOAT32, sums, params.partialOut(row, headSizeV), factor);
    writeFloat(
        params.partialLse(row),
        sum == 0 ? Float.NEGATIVE_INFINITY : (float) (largest + Math.log(sum)));
  }

  private void finishWhole(int r, long sums, float largest, float sum) {
    int head = kvHead * group + r % group;
    int token = WorkItem.queryFirst(item) + r / group;
    float sink = params.hasSinks() ? params.sink(head) : Float.NEGATIVE_INFINITY;
    float top = Math.max(largest, sink);
    double kept = sum == 0 ? 0 : Math.exp((double) largest - top);
    double total =
        sum * kept + (sink == Float.NEGATIVE_INFINITY ? 0 : Math.exp((double) sink - top));
    double factor = sum == 0 ? 0 : kept / total * CacheParams.valueScale(cache, kvHead);
    KernelType out = params.outType();
    store(out, sums, params.outRow(token) + (long) head * headSizeV * out.bytes(), (float) factor);
    if (params.wantsLse()) {
      writeFloat(
          params.lseRow(token) + 4L * head,
          total == 0 ? Float.NEGATIVE_INFINITY : (float) (top + Math.log(total)));
    }
  }

  private void store(KernelType to, long sums, long out, float factor) {
    switch (to) {
      case FLOAT32 -> {
        for (int d = 0; d < headSizeV; d++) {
          writeFloat(out + 4L * d, readFloat(sums + 4L * d) * factor);
        }
      }
      case BFLOAT16 -> {
        for (int d = 0; d < headSizeV; d++) {
          RawMemory.writeShort(
              out + 2L * d, NarrowFloats.toBf16(readFloat(sums + 4L * d) * factor));
        }
      }
      case FLOAT16, FLOAT8_E4M3, FLOAT8_E5M2, INT8_PER_TOKEN_HEAD, FLOAT8_PER_TOKEN_HEAD -> {
        for (int d = 0; d < headSizeV; d++) {
          Numbers.write(to, out + (long) d * to.bytes(), readFloat(sums + 4L * d) * factor);
        }
      }
    }
  }
}
