package bifocal.core.engine;

import bifocal.core.backend.BatchLimits;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.BlockTable;
import bifocal.core.cache.KvBlocks;
import bifocal.core.cache.SlotBuffer;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;

/**
 * The requests of one layer group for a host without a block manager: which blocks each of them
 * holds, and the batches that its next tokens make. A request is a row; it stays in its row until
 * it is released.
 *
 * <p>Not thread-safe: it belongs to whoever schedules. A batch is valid until the next one is made.
 */
public final class PagedRequests implements AutoCloseable {
  private final KvBlocks blocks;
  private final BlockTable table;
  private final SlotBuffer slots;
  private final BatchLimits limits;

  private PagedRequests(KvBlocks blocks, BlockTable table, SlotBuffer slots, BatchLimits limits) {
    this.blocks = blocks;
    this.table = table;
    this.slots = slots;
    this.limits = limits;
  }

  /** Room for the largest batch, without any request yet. */
  public static PagedRequests allocate(KvBlocks blocks, BatchLimits limits) {
    SlotBuffer slots = SlotBuffer.allocate(limits.maxQueryTokens());
    try {
      BlockTable table = BlockTable.allocate(blocks, limits.maxRequests(), limits.maxSeqLen());
      return new PagedRequests(blocks, table, slots, limits);
    } catch (RuntimeException | Error e) {
      slots.close();
      throw e;
    }
  }

  /** Tokens of a row. */
  public int tokens(int row) {
    return table.tokens(row);
  }

  /** Lets an empty row begin with all tokens of another; both hold the same blocks. */
  public void share(int from, int to) {
    table.share(from, to);
  }

  /** Gives a row's blocks back and empties it. */
  public void release(int row) {
    table.release(row);
  }

  /**
   * Makes room for each row's next tokens and describes the batch that computes them. A block that
   * rows share is copied before one of them writes it, so room for a copy is asked for each of
   * them.
   *
   * @param newTokens tokens of each row in this step, 0 for rows that wait: {@code [requests]}
   * @param images images by row, as absolute positions
   * @throws BifocalException {@code POOL_EXHAUSTED}, {@code BLOCK_TABLE_TOO_SHORT}, {@code
   *     MEMORY_TOO_SMALL}, {@code NEGATIVE} or {@code SHAPE_MISMATCH}, with nothing leased
   */
  public CommonAttentionMetadata schedule(int[] newTokens, ImageRanges images) {
    requireRoom(newTokens);
    int[] queryStartLoc = new int[newTokens.length + 1];
    int[] seqLens = new int[newTokens.length];
    for (int row = 0; row < newTokens.length; row++) {
      if (newTokens[row] > 0) {
        table.append(row, newTokens[row], slots.memory(), queryStartLoc[row]);
      }
      queryStartLoc[row + 1] = queryStartLoc[row] + newTokens[row];
      seqLens[row] = table.tokens(row);
    }
    return CommonAttentionMetadata.builder(
            queryStartLoc,
            seqLens,
            table.tensor(),
            new SlotMapping(slots.tensor(queryStartLoc[newTokens.length])))
        .images(images)
        .build();
  }

  private void requireRoom(int[] newTokens) {
    if (newTokens.length < 1 || newTokens.length > limits.maxRequests()) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          "rows of a batch",
          newTokens.length,
          "1.." + limits.maxRequests());
    }
    long tokens = 0;
    long leases = 0;
    for (int row = 0; row < newTokens.length; row++) {
      if (newTokens[row] < 0) {
        throw BifocalException.of(
            ErrorCode.NEGATIVE, "new tokens of row " + row, newTokens[row], "at least 0");
      }
      long length = (long) table.tokens(row) + newTokens[row];
      if (length > limits.maxSeqLen()) {
        throw BifocalException.of(
            ErrorCode.BLOCK_TABLE_TOO_SHORT,
            "tokens of row " + row,
            length,
            "at most " + limits.maxSeqLen());
      }
      tokens += newTokens[row];
      leases += table.blocksToAppend(row, newTokens[row]);
    }
    if (tokens > limits.maxQueryTokens()) {
      throw BifocalException.of(
          ErrorCode.MEMORY_TOO_SMALL,
          "tokens of a batch",
          tokens,
          "at most " + limits.maxQueryTokens());
    }
    if (leases > blocks.free()) {
      throw BifocalException.of(
              ErrorCode.POOL_EXHAUSTED, "free KV cache blocks for a batch", blocks.free(), leases)
          .withRemedy("let requests finish, or give the pool more blocks");
    }
  }

  /** Gives all blocks and memory back; closing twice is harmless. */
  @Override
  public void close() {
    table.close();
    slots.close();
  }
}
