package bifocal.core.cache;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.ValueLayout;

/**
 * Turns a host's table of pages into the table of kernel blocks that its kernels read, where a page
 * holds several kernel blocks. Page {@code p} holds kernel blocks {@code p * n .. p * n + n - 1}
 * one behind the other, so page 0 is made of null blocks, and a token's slot is the same number in
 * either table.
 *
 * @param pageTokens tokens of one page
 * @param blockTokens tokens of one kernel block, a divisor of the page
 */
public record PageTable(int pageTokens, int blockTokens) {
  private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

  public PageTable {
    if (blockTokens < 1 || pageTokens < blockTokens || pageTokens % blockTokens != 0) {
      throw BifocalException.of(
          ErrorCode.KV_INCOMPATIBLE,
          "page of " + pageTokens + " tokens",
          "kernel blocks of " + blockTokens,
          "a positive divisor of the page");
    }
  }

  /** Kernel blocks of one page. */
  public int blocksPerPage() {
    return pageTokens / blockTokens;
  }

  /**
   * Writes the kernel block table of so many requests.
   *
   * @param pages int32 {@code [rows, pages]} on the host
   * @param blocks int32 {@code [rows, pages * blocksPerPage]} on the host
   * @param rows rows to expand, from the first
   * @throws BifocalException {@code SHAPE_MISMATCH}, {@code DTYPE_MISMATCH}, {@code
   *     DEVICE_MISMATCH}, {@code BLOCK_OUT_OF_RANGE} or {@code OVERFLOW}
   */
  public void expand(TensorView pages, TensorView blocks, int rows) {
    requireTable("page table", pages, rows, 0);
    requireTable("kernel block table", blocks, rows, pages.size(1) * blocksPerPage());
    int perPage = blocksPerPage();
    for (int row = 0; row < rows; row++) {
      for (long column = 0; column < pages.size(1); column++) {
        int first = firstBlock(pages.data().get(INT, offset(pages, row, column)));
        for (int i = 0; i < perPage; i++) {
          blocks.data().set(INT, offset(blocks, row, column * perPage + i), first + i);
        }
      }
    }
  }

  private int firstBlock(int page) {
    if (page < 0) {
      throw BifocalException.of(ErrorCode.BLOCK_OUT_OF_RANGE, "page of a table", page, "from 0");
    }
    long first = (long) page * blocksPerPage();
    if (first + blocksPerPage() > Integer.MAX_VALUE) {
      throw BifocalException.of(
          ErrorCode.OVERFLOW, "kernel blocks of page " + page, first, "block numbers of 32 bits");
    }
    return (int) first;
  }

  private static void requireTable(String name, TensorView table, int rows, long columns) {
    table.require(name, DType.INT32, table.device(), -1, -1);
    if (!table.device().hostReadable()) {
      throw BifocalException.of(
          ErrorCode.DEVICE_MISMATCH, name, table.device(), "memory that the host reads");
    }
    if (rows < 0 || table.size(0) < rows || table.size(1) < columns) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, name, table, "at least [" + rows + ", " + columns + "]");
    }
  }

  private static long offset(TensorView table, long row, long column) {
    return (row * table.stride(0) + column * table.stride(1)) * Integer.BYTES;
  }
}
