package bifocal.cuda.triton;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * The block table that kernels read. A table of the host is copied with the step's metadata, and
 * only entries that hold visible keys are: they are checked, and all others become the null block.
 * A table on the device is read where it is, unchecked.
 */
final class BlockTableCopy {
  private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
  private static final int UNKNOWN = -1;

  private final TensorView table;
  private final KvCacheSpec cache;
  private final int rows;
  private final int columns;

  private BlockTableCopy(TensorView table, KvCacheSpec cache, int rows, int columns) {
    this.table = table;
    this.cache = cache;
    this.rows = rows;
    this.columns = columns;
  }

  /**
   * Plans the copy of a batch's table.
   *
   * @param everyRow whether rows of padding have a place too, so that the layout of a captured step
   *     does not depend on how many requests are live
   */
  static BlockTableCopy of(CommonAttentionMetadata batch, KvCacheSpec cache, boolean everyRow) {
    TensorView table = batch.blockTable();
    if (table.size(1) > 1 && table.stride(1) != 1) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "stride of the block table's columns", table.stride(1), 1);
    }
    if (!table.device().hostReadable()) {
      return new BlockTableCopy(table, cache, 0, 0);
    }
    int rows = everyRow ? batch.requests() : 0;
    for (int r = 0; r < batch.live(); r++) {
      rows = Math.max(rows, batch.blockTableRow(r) + 1);
    }
    int needed = everyRow ? Integer.MAX_VALUE : Math.max(1, cache.blocksFor(batch.maxSeqLen()));
    return new BlockTableCopy(
        table, cache, rows, (int) Math.max(1, Math.min(needed, table.size(1))));
  }

  private boolean copied() {
    return table.device().hostReadable();
  }

  /** Bytes of the copy. */
  long bytes() {
    return (long) rows * columns * Integer.BYTES;
  }

  /** Entries of a row of the host's table. */
  long columns() {
    return table.size(1);
  }

  /** Entries from row to row of the table that kernels read. */
  long stride() {
    return copied() ? columns : table.stride(0);
  }

  /** Address of the table that kernels read. */
  long address(long ofCopy) {
    return copied() ? ofCopy : table.address();
  }

  /**
   * Writes the entries that hold keys some tile sees.
   *
   * @return the largest block, -1 when the host cannot know
   */
  int write(StepTiles tiles, MemorySegment to, long offset) {
    if (!copied()) {
      return UNKNOWN;
    }
    int[] first = new int[rows];
    int[] last = new int[rows];
    Arrays.fill(first, Integer.MAX_VALUE);
    Arrays.fill(last, -1);
    reach(tiles.prefill(), first, last);
    reach(tiles.decode(), first, last);
    int largest = 0;
    for (int row = 0; row < rows; row++) {
      int begin = Math.min(first[row], last[row] + 1);
      largest = Math.max(largest, copyRow(row, begin, last[row] + 1, to, offset));
    }
    return largest;
  }

  private void reach(TileList tiles, int[] first, int[] last) {
    for (int tile = 0; tile < tiles.size(); tile++) {
      if (tiles.visible(tile) > 0) {
        int row = tiles.blockTableRow(tile);
        first[row] = Math.min(first[row], tiles.low(tile) / cache.blockSize());
        last[row] = Math.max(last[row], tiles.high(tile) / cache.blockSize());
      }
    }
  }

  private int copyRow(int row, int begin, int end, MemorySegment to, long offset) {
    if (end > begin && (end > table.size(1) || row >= table.size(0))) {
      throw BifocalException.of(
          ErrorCode.BLOCK_TABLE_TOO_SHORT,
          "row " + row + " of the block table",
          table,
          end + " blocks of " + cache.blockSize() + " tokens");
    }
    long at = offset + (long) row * columns * Integer.BYTES;
    to.asSlice(at, (long) columns * Integer.BYTES).fill((byte) 0);
    long from = row * table.stride(0) * Integer.BYTES;
    int largest = 0;
    for (int i = begin; i < end; i++) {
      int block = table.data().get(INT, from + (long) i * Integer.BYTES);
      if (block < 0) {
        throw BifocalException.of(
            ErrorCode.BLOCK_OUT_OF_RANGE,
            "block " + i + " in row " + row + " of the block table",
            block,
            "a block of the cache");
      }
      to.set(INT, at + (long) i * Integer.BYTES, block);
      largest = Math.max(largest, block);
    }
    return largest;
  }
}
