package bifocal.core.engine;

import bifocal.core.Incubating;
import bifocal.core.backend.BatchLimits;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.BlockTable;
import bifocal.core.cache.KvBlocks;
import bifocal.core.cache.SequenceKeys;
import bifocal.core.cache.SlotBuffer;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.control.Option;
import org.jspecify.annotations.Nullable;

/**
 * The requests of one layer group for a host without a block manager: which blocks each of them
 * holds, and the batches that its next tokens make. A request is a row; it stays in its row until
 * it is released.
 *
 * <p>Not thread-safe: it belongs to whoever schedules. A batch is valid until the next one is made.
 */
@Incubating
public final class PagedRequests implements AutoCloseable {
  private final KvBlocks blocks;
  private final BlockTable table;
  private final SlotBuffer slots;
  private final BatchLimits limits;
  private final @Nullable Sequence[] sequences;

  private record Sequence(SequenceKeys keys, int[] images) {}

  private PagedRequests(KvBlocks blocks, BlockTable table, SlotBuffer slots, BatchLimits limits) {
    this.blocks = blocks;
    this.table = table;
    this.slots = slots;
    this.limits = limits;
    this.sequences = new Sequence[limits.maxRequests()];
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

  /**
   * Lets an empty row begin with what is cached of a sequence: whole blocks of it, and never all of
   * its tokens. What the row computes of the sequence is cached in turn when it is {@linkplain
   * #publish published}.
   *
   * @param tokenIds the row's tokens, as far as they are known
   * @param images the sequence's images, also those whose tokens follow later
   * @param mostTokens tokens at most
   * @return tokens that the row has now
   * @throws BifocalException {@code INVALID_PARAMETER}, {@code BLOCK_TABLE_TOO_SHORT}, {@code
   *     NEGATIVE}, {@code IMAGE_REVERSED} or {@code IMAGE_OVERLAP}, with nothing leased
   */
  public int begin(int row, int[] tokenIds, Seq<SequenceImage> images, int mostTokens) {
    requireRow(row);
    SequenceKeys keys = SequenceKeys.of(blocks);
    int[] ranges = new int[2 * images.size()];
    for (int i = 0; i < images.size(); i++) {
      SequenceImage image = images.get(i);
      keys.image(image.first(), image.last(), image.content());
      ranges[2 * i] = image.first();
      ranges[2 * i + 1] = image.last();
    }
    keys.append(tokenIds);
    int tokens = table.begin(row, keys, mostTokens);
    sequences[row] = new Sequence(keys, ranges);
    return tokens;
  }

  /** Names the next tokens of a row that began with a sequence; other rows have no names. */
  public void append(int row, int... tokenIds) {
    sequence(row).forEach(sequence -> sequence.keys().append(tokenIds));
  }

  /**
   * Lets other rows find the full blocks of those that began with a sequence. To be called when all
   * layers of a step have run.
   */
  public void publish() {
    for (int row = 0; row < sequences.length; row++) {
      int from = row;
      sequence(row).forEach(sequence -> table.publish(from, sequence.keys()));
    }
  }

  /** Lets an empty row begin with all tokens of another; both hold the same blocks. */
  public void share(int from, int to) {
    table.share(from, to);
  }

  /** Gives a row's blocks back and empties it. */
  public void release(int row) {
    table.release(row);
    sequences[row] = null;
  }

  /** What is known of a row's tokens, absent when it began without. */
  private Option<Sequence> sequence(int row) {
    requireRow(row);
    return Option.of(sequences[row]);
  }

  /** The images of the sequences that rows began with. */
  public ImageRanges images() {
    int[][] ranges = new int[sequences.length][];
    for (int row = 0; row < ranges.length; row++) {
      ranges[row] = sequence(row).map(Sequence::images).getOrElse(new int[0]);
    }
    return ImageRanges.of(ranges, ranges.length);
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

  private void requireRow(int row) {
    if (row < 0 || row >= sequences.length) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "row of a batch", row, "below " + sequences.length);
    }
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
