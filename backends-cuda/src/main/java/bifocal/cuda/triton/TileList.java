package bifocal.cuda.triton;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * Tiles of a launch: runs of query tokens of one request that a program works on. Each is eight
 * numbers: first q row, query tokens, position of the first, keys of the request, left window,
 * right window, row of the block table, 0. A tile without query tokens is padding. The list belongs
 * to one build.
 */
final class TileList {
  /** Numbers of a tile. */
  static final int WORDS = 8;

  /** Bytes of a tile. */
  static final int BYTES = WORDS * Integer.BYTES;

  private static final int BLOCK_TABLE_ROW = 6;
  private static final int PADDING = -1;

  private int[] fields;
  private int[] lows;
  private int[] highs;
  private int count;

  TileList(int capacity) {
    fields = new int[Math.max(1, capacity) * WORDS];
    lows = new int[Math.max(1, capacity)];
    highs = new int[Math.max(1, capacity)];
  }

  int size() {
    return count;
  }

  boolean isEmpty() {
    return count == 0;
  }

  /** One number of a tile, in the order in which tiles were added. */
  int field(int tile, int word) {
    return fields[tile * WORDS + word];
  }

  /** Keys that some query of a tile sees, those between the smallest and the largest included. */
  int visible(int tile) {
    return Math.max(0, highs[tile] - lows[tile] + 1);
  }

  /** Smallest key that some query of a tile sees. */
  int low(int tile) {
    return lows[tile];
  }

  /** Largest key that some query of a tile sees; below the smallest when none sees any. */
  int high(int tile) {
    return highs[tile];
  }

  /** Row of the block table that a tile reads. */
  int blockTableRow(int tile) {
    return field(tile, BLOCK_TABLE_ROW);
  }

  void add(int row, int tokens, int position, int keys, KeyCursor cursor, int blockTableRow) {
    if (count == lows.length) {
      fields = Arrays.copyOf(fields, 2 * fields.length);
      lows = Arrays.copyOf(lows, 2 * lows.length);
      highs = Arrays.copyOf(highs, 2 * highs.length);
    }
    int at = count * WORDS;
    fields[at] = row;
    fields[at + 1] = tokens;
    fields[at + 2] = position;
    fields[at + 3] = keys;
    fields[at + 4] = cursor.leftWindow();
    fields[at + 5] = cursor.rightWindow();
    fields[at + BLOCK_TABLE_ROW] = blockTableRow;
    lows[count] = cursor.low();
    highs[count++] = cursor.high();
  }

  /** The tiles in an order that keeps all programs busy: most visible keys first. */
  int[] byFallingCost() {
    return sorted(0, count);
  }

  /**
   * The tiles in pairs for programs that stay close together in the list: request by request, the
   * costliest first; in each, a tile that sees many keys is followed by one that sees few, an odd
   * one by padding.
   *
   * @return numbers of tiles, -1 for padding
   */
  int[] inPairs() {
    int[] starts = new int[count + 1];
    int groups = 0;
    for (int tile = 0; tile < count; tile++) {
      if (tile == 0 || field(tile, BLOCK_TABLE_ROW) != field(tile - 1, BLOCK_TABLE_ROW)) {
        starts[groups++] = tile;
      }
    }
    starts[groups] = count;
    int[] order = new int[count + groups];
    int end = 0;
    for (int group : costliestFirst(starts, groups)) {
      end = pair(sorted(starts[group], starts[group + 1]), order, end);
    }
    return Arrays.copyOf(order, end);
  }

  private int[] costliestFirst(int[] starts, int groups) {
    long[] keys = new long[groups];
    for (int group = 0; group < groups; group++) {
      long cost = 0;
      for (int tile = starts[group]; tile < starts[group + 1]; tile++) {
        cost += visible(tile);
      }
      keys[group] = descending(Math.min(cost, Integer.MAX_VALUE), group);
    }
    return numbers(keys);
  }

  private static int pair(int[] sorted, int[] order, int end) {
    int half = (sorted.length + 1) / 2;
    for (int i = 0; i < half; i++) {
      int light = sorted.length - 1 - i;
      order[end++] = sorted[i];
      order[end++] = light >= half ? sorted[light] : PADDING;
    }
    return end;
  }

  private int[] sorted(int from, int to) {
    long[] keys = new long[to - from];
    for (int tile = from; tile < to; tile++) {
      keys[tile - from] = descending(visible(tile), tile);
    }
    return numbers(keys);
  }

  /** Sorts large costs first, and equal ones as they came. */
  private static long descending(long cost, int number) {
    return (Integer.MAX_VALUE - cost) << Integer.SIZE | number;
  }

  private static int[] numbers(long[] keys) {
    Arrays.sort(keys);
    int[] numbers = new int[keys.length];
    for (int i = 0; i < keys.length; i++) {
      numbers[i] = (int) keys[i];
    }
    return numbers;
  }

  /** Writes tiles in an order, and padding behind them until there are {@code total}. */
  void write(int[] order, int total, MemorySegment to, long offset) {
    long at = offset;
    for (int tile : order) {
      if (tile == PADDING) {
        writePadding(to, at);
      } else {
        MemorySegment.copy(fields, tile * WORDS, to, ValueLayout.JAVA_INT, at, WORDS);
      }
      at += BYTES;
    }
    for (int i = order.length; i < total; i++) {
      writePadding(to, at);
      at += BYTES;
    }
  }

  private static void writePadding(MemorySegment to, long at) {
    to.asSlice(at, BYTES).fill((byte) 0);
  }
}
