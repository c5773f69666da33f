package bifocal.core.batch;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.ValueLayout;

/**
 * How far into a cache one step reaches. A builder finds it once; each layer then compares it with
 * the number of its blocks, so that no kernel leaves the cache.
 *
 * @param highestBlock largest block that a live request's keys lie in, 0 when there is none
 * @param highestSlot largest slot that a live token is written to, -1 when none is written
 */
public record CacheBounds(int highestBlock, long highestSlot) {
  private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
  private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;

  /**
   * Reads the block table and the slots of the live requests. Entries behind a request's last key,
   * rows and slots of padding are never read.
   *
   * @param blockSize tokens of one block of the table
   * @throws BifocalException {@code BLOCK_TABLE_TOO_SHORT} or {@code BLOCK_OUT_OF_RANGE} naming the
   *     request, {@code SHAPE_MISMATCH} when there are fewer slots than query tokens, {@code
   *     SLOT_OUT_OF_RANGE}, or {@code DEVICE_MISMATCH} when the host cannot read a table
   */
  public static CacheBounds of(CommonAttentionMetadata batch, int blockSize) {
    return new CacheBounds(highestBlock(batch, blockSize), highestSlot(batch));
  }

  /**
   * Requires that all of it lies inside a cache.
   *
   * @param numBlocks blocks of the cache, the null block included
   * @throws BifocalException {@code BLOCK_OUT_OF_RANGE} or {@code SLOT_OUT_OF_RANGE}
   */
  public void requireInside(int numBlocks, int blockSize) {
    if (highestBlock >= numBlocks) {
      throw BifocalException.of(
          ErrorCode.BLOCK_OUT_OF_RANGE,
          "block of a block table",
          highestBlock,
          "0.." + (numBlocks - 1));
    }
    requireSlotsInside(highestSlot, numBlocks, blockSize);
  }

  /**
   * Requires that a slot mapping, read by itself as a writer does, lies inside a cache.
   *
   * @throws BifocalException {@code SLOT_OUT_OF_RANGE} or {@code DEVICE_MISMATCH}
   */
  public static void requireInside(SlotMapping slots, int numBlocks, int blockSize) {
    requireSlotsInside(highestSlot(slots.slots(), 0, slots.tokens()), numBlocks, blockSize);
  }

  private static void requireSlotsInside(long highest, int numBlocks, int blockSize) {
    if (highest >= (long) numBlocks * blockSize) {
      throw BifocalException.of(
          ErrorCode.SLOT_OUT_OF_RANGE,
          "slot of a slot mapping",
          highest,
          "at most " + ((long) numBlocks * blockSize - 1));
    }
  }

  private static int highestBlock(CommonAttentionMetadata batch, int blockSize) {
    TensorView table = batch.blockTable();
    requireHostReadable("block table", table);
    int highest = 0;
    for (int r = 0; r < batch.live(); r++) {
      int blocks = Math.ceilDiv(batch.seqLen(r), blockSize);
      if (blocks > table.size(1) || batch.blockTableRow(r) >= table.size(0)) {
        throw BifocalException.of(
            ErrorCode.BLOCK_TABLE_TOO_SHORT,
            "request " + r,
            "row " + batch.blockTableRow(r) + " of " + table,
            blocks + " blocks of " + blockSize + " tokens");
      }
      long row = batch.blockTableRow(r) * table.stride(0) * Integer.BYTES;
      for (int i = 0; i < blocks; i++) {
        int block = table.data().get(INT, row + i * table.stride(1) * Integer.BYTES);
        if (block < 0) {
          throw BifocalException.of(
              ErrorCode.BLOCK_OUT_OF_RANGE, "request " + r, "block " + block, "not negative");
        }
        highest = Math.max(highest, block);
      }
    }
    return highest;
  }

  private static long highestSlot(CommonAttentionMetadata batch) {
    TensorView slots = batch.slots().slots();
    if (batch.independentKeys()) {
      // Keys are not the queries' own: their slots are not counted by q rows.
      return highestSlot(slots, 0, slots.size(0));
    }
    long highest = SlotMapping.PADDING;
    for (int r = 0; r < batch.live(); r++) {
      int from = batch.queryStart(r);
      int to = from + batch.queryLen(r);
      if (to > slots.size(0)) {
        throw BifocalException.of(
            ErrorCode.SHAPE_MISMATCH, "slots of request " + r, slots.size(0), "at least " + to);
      }
      highest = Math.max(highest, highestSlot(slots, from, to));
    }
    return highest;
  }

  private static long highestSlot(TensorView slots, long from, long to) {
    requireHostReadable("slot mapping", slots);
    long highest = SlotMapping.PADDING;
    for (long i = from; i < to; i++) {
      long slot = slots.data().get(LONG, i * slots.stride(0) * Long.BYTES);
      if (slot < SlotMapping.PADDING) {
        throw BifocalException.of(
            ErrorCode.SLOT_OUT_OF_RANGE, "slot of token " + i, slot, "at least -1");
      }
      highest = Math.max(highest, slot);
    }
    return highest;
  }

  private static void requireHostReadable(String name, TensorView tensor) {
    if (!tensor.device().hostReadable()) {
      throw BifocalException.of(
          ErrorCode.DEVICE_MISMATCH, name, tensor.device(), "memory that the host reads");
    }
  }
}
