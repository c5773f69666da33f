package bifocal.cuda.flashinfer;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * The pages that runs read, as one list. Of a block table on the host only the pages that are read
 * are copied, once for each of its rows, and checked; a table on the device is the list itself,
 * unchecked.
 */
final class PageTable {
  static final int UNKNOWN = -1;
  private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

  private final TensorView table;
  private final int[] first;
  private final int[] offset;
  private final boolean tight;
  private final int length;

  private PageTable(TensorView table, int[] first, int[] offset, boolean tight, int length) {
    this.table = table;
    this.first = first;
    this.offset = offset;
    this.tight = tight;
    this.length = length;
  }

  /**
   * Plans the list of some runs.
   *
   * @throws BifocalException {@code SHAPE_MISMATCH}, {@code BLOCK_TABLE_TOO_SHORT}
   */
  static PageTable of(CommonAttentionMetadata batch, KvCacheSpec cache, RunList runs) {
    TensorView table = batch.blockTable();
    if (table.size(1) > 1 && table.stride(1) != 1) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "stride of the block table's columns", table.stride(1), 1);
    }
    int rows = 0;
    for (int run = 0; run < runs.size(); run++) {
      rows = Math.max(rows, runs.tableRow(run) + 1);
      requireColumns(table, cache, runs, run);
    }
    if (!table.device().hostReadable()) {
      return new PageTable(table, new int[0], new int[0], false, 0);
    }
    int[] first = new int[rows];
    int[] end = new int[rows];
    Arrays.fill(first, Integer.MAX_VALUE);
    for (int run = 0; run < runs.size(); run++) {
      int row = runs.tableRow(run);
      first[row] = Math.min(first[row], runs.firstPage(run));
      end[row] = Math.max(end[row], runs.firstPage(run) + runs.pages(run));
    }
    return placed(table, runs, first, end);
  }

  private static PageTable placed(TensorView table, RunList runs, int[] first, int[] end) {
    int[] offset = new int[first.length];
    Arrays.fill(offset, UNKNOWN);
    int length = 0;
    boolean tight = true;
    for (int run = 0; run < runs.size(); run++) {
      int row = runs.tableRow(run);
      tight &= offset[row] == UNKNOWN;
      if (offset[row] == UNKNOWN) {
        offset[row] = length;
        length += end[row] - first[row];
      }
    }
    return new PageTable(table, first, offset, tight, length);
  }

  private static void requireColumns(TensorView table, KvCacheSpec cache, RunList runs, int run) {
    int needed = runs.firstPage(run) + runs.pages(run);
    if (needed > table.size(1) || runs.tableRow(run) >= table.size(0)) {
      throw BifocalException.of(
          ErrorCode.BLOCK_TABLE_TOO_SHORT,
          "row " + runs.tableRow(run) + " of the block table",
          table,
          needed + " blocks of " + cache.blockSize() + " tokens");
    }
  }

  /** Whether the table is copied, with the metadata of the step. */
  boolean copied() {
    return table.device().hostReadable();
  }

  /** Whether the pages of each run begin where those of the run before it end. */
  boolean tight() {
    return tight;
  }

  /** Pages to copy. */
  int length() {
    return length;
  }

  /** The list on the device, where it is not copied. */
  TensorView inPlace() {
    return table;
  }

  /** Where the pages of a run begin in the list. */
  int start(RunList runs, int run) {
    int row = runs.tableRow(run);
    return copied()
        ? offset[row] + runs.firstPage(run) - first[row]
        : Math.toIntExact(row * table.stride(0) + runs.firstPage(run));
  }

  /**
   * Copies the pages.
   *
   * @param at index of the first in the target
   * @return the largest block, {@link #UNKNOWN} when the host cannot know
   * @throws BifocalException {@code BLOCK_OUT_OF_RANGE} for a negative block
   */
  int write(RunList runs, MemorySegment to, int at) {
    if (!copied()) {
      return UNKNOWN;
    }
    int largest = 0;
    for (int run = 0; run < runs.size(); run++) {
      long from = runs.tableRow(run) * table.stride(0) + runs.firstPage(run);
      int target = at + start(runs, run);
      for (int page = 0; page < runs.pages(run); page++) {
        int block = table.data().get(INT, (from + page) * Integer.BYTES);
        if (block < 0) {
          throw BifocalException.of(
              ErrorCode.BLOCK_OUT_OF_RANGE,
              "block "
                  + (runs.firstPage(run) + page)
                  + " in row "
                  + runs.tableRow(run)
                  + " of the block table",
              block,
              "a block of the cache");
        }
        to.setAtIndex(ValueLayout.JAVA_INT, target + page, block);
        largest = Math.max(largest, block);
      }
    }
    return largest;
  }
}
