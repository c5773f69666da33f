package bifocal.core.cache;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;

/**
 * The block table of one group for a host that has no block manager of its own: one row for each
 * request, on the host, with the leases behind it. Entries without a block are 0, the null block.
 *
 * <p>Not thread-safe: it belongs to whoever schedules. It releases its leases and its memory when
 * closed.
 */
public final class BlockTable implements AutoCloseable {
  private final KvBlocks pool;
  private final Arena arena;
  private final MemorySegment entries;
  private final TensorView tensor;
  private final int columns;
  private final @Nullable Row[] rows;
  private boolean closed;

  private record Row(BlockLease lease, int tokens, int published) {}

  private BlockTable(KvBlocks pool, Arena arena, int rows, int columns) {
    this.pool = pool;
    this.arena = arena;
    this.columns = columns;
    this.rows = new Row[rows];
    this.entries = arena.allocate((long) rows * columns * Integer.BYTES, Integer.BYTES);
    this.tensor = TensorView.ofHost(entries, DType.INT32, rows, columns);
  }

  /**
   * A table without any request.
   *
   * @param requests rows
   * @param maxSeqLen tokens that a row has room for, at least
   */
  @SuppressWarnings("MustBeClosedChecker") // the table closes its arena
  public static BlockTable allocate(KvBlocks pool, int requests, int maxSeqLen) {
    if (requests < 1 || maxSeqLen < 1) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "block table",
          requests + " requests of " + maxSeqLen + " tokens",
          "at least one of each");
    }
    return new BlockTable(
        pool, Arena.ofShared(), requests, Math.ceilDiv(maxSeqLen, pool.spec().blockSize()));
  }

  /** The table, int32 {@code [requests, blocks]}. */
  public TensorView tensor() {
    requireOpen();
    return tensor;
  }

  /** Tokens of a row. */
  public int tokens(int row) {
    return at(row).map(Row::tokens).getOrElse(0);
  }

  /**
   * Blocks that a row would have to lease for so many more tokens, copies of those among the blocks
   * written that it shares with others included.
   */
  public int blocksToAppend(int row, int tokens) {
    int copies = tokens == 0 ? 0 : at(row).map(this::copiesToAppend).getOrElse(0);
    return (int) Math.min((long) blocksBehind(row, tokens) + copies, Integer.MAX_VALUE);
  }

  private int blocksBehind(int row, int tokens) {
    int leased = at(row).map(r -> r.lease().size()).getOrElse(0);
    long wanted = Math.ceilDiv((long) tokens(row) + tokens, (long) pool.spec().blockSize());
    return (int) Math.clamp(wanted - leased, 0L, (long) Integer.MAX_VALUE);
  }

  private int copiesToAppend(Row row) {
    int copies = 0;
    for (int i = touched(row, row.tokens()); i < row.lease().size(); i++) {
      copies += row.lease().shared(i) ? 1 : 0;
    }
    return copies;
  }

  /**
   * Makes room for a row's next tokens and writes their slots, int64 in native byte order. The
   * block that the row's last token shares with another row is copied first.
   *
   * @param slots where the slots go
   * @param first index of the first slot in {@code slots}
   * @throws BifocalException {@code POOL_EXHAUSTED}, {@code BLOCK_TABLE_TOO_SHORT}, {@code
   *     MEMORY_TOO_SMALL} or {@code NEGATIVE}, with nothing changed
   */
  public void append(int row, int tokens, MemorySegment slots, long first) {
    int present = tokens(row);
    if (tokens < 0 || first < 0) {
      throw BifocalException.of(
          ErrorCode.NEGATIVE, "tokens to append", tokens + " at slot " + first, "not negative");
    }
    int blockSize = pool.spec().blockSize();
    if ((long) present + tokens > (long) columns * blockSize) {
      throw BifocalException.of(
          ErrorCode.BLOCK_TABLE_TOO_SHORT,
          "tokens of row " + row,
          (long) present + tokens,
          "at most " + (long) columns * blockSize);
    }
    if (slots.byteSize() / Long.BYTES - tokens < first) {
      throw BifocalException.of(
          ErrorCode.MEMORY_TOO_SMALL,
          "memory of a slot mapping",
          slots.byteSize() / Long.BYTES + " slots",
          first + " + " + tokens);
    }
    BlockLease lease = leaseFor(row, present, tokens);
    for (int i = present / blockSize; i < lease.size(); i++) {
      entries.setAtIndex(ValueLayout.JAVA_INT, (long) row * columns + i, lease.block(i));
    }
    for (int i = 0; i < tokens; i++) {
      int position = present + i;
      long slot = (long) lease.block(position / blockSize) * blockSize + position % blockSize;
      slots.set(ValueLayout.JAVA_LONG_UNALIGNED, (first + i) * Long.BYTES, slot);
    }
    rows[row] = new Row(lease, present + tokens, at(row).map(Row::published).getOrElse(0));
  }

  /**
   * Lets an empty row begin with those of a sequence's tokens that are cached: whole blocks, and
   * never all of the tokens, since the last one has to be computed for what follows it.
   *
   * @param mostTokens tokens at most; with several groups the least that any of them knows
   * @return tokens that the row has now, from which the sequence goes on
   * @throws BifocalException {@code INVALID_PARAMETER} when the row is not empty or the keys are
   *     another group's, {@code BLOCK_TABLE_TOO_SHORT} or {@code NEGATIVE}
   */
  public int begin(int row, SequenceKeys sequence, int mostTokens) {
    requireEmpty(row);
    if (mostTokens < 0) {
      throw BifocalException.of(ErrorCode.NEGATIVE, "tokens to begin with", mostTokens, "from 0");
    }
    int blockSize = pool.spec().blockSize();
    int most = Math.min(mostTokens, Math.max(0, sequence.tokens() - 1)) / blockSize;
    BlockLease lease = pool.leaseKnown(sequence, most);
    if (lease.size() == 0) {
      lease.close();
      return 0;
    }
    if (lease.size() > columns) {
      int needed = lease.size();
      lease.close();
      throw BifocalException.of(
          ErrorCode.BLOCK_TABLE_TOO_SHORT, "blocks of row " + row, needed, "at most " + columns);
    }
    for (int i = 0; i < lease.size(); i++) {
      entries.setAtIndex(ValueLayout.JAVA_INT, (long) row * columns + i, lease.block(i));
    }
    rows[row] = new Row(lease, lease.size() * blockSize, lease.size());
    return tokens(row);
  }

  /**
   * Lets the full blocks of a row be found by other rows, also after it was released. To be called
   * when all layers have run: what is published is in the cache.
   *
   * @param sequence keys of the row's tokens
   * @throws BifocalException {@code INVALID_PARAMETER} for keys of another group
   */
  public void publish(int row, SequenceKeys sequence) {
    sequence.requireOf(pool);
    at(row)
        .forEach(
            r -> {
              int full = Math.min(r.tokens() / pool.spec().blockSize(), sequence.blocks());
              for (int i = r.published(); i < full; i++) {
                r.lease().publish(i, sequence.key(i));
              }
              rows[row] = new Row(r.lease(), r.tokens(), Math.max(full, r.published()));
            });
  }

  /**
   * Lets an empty row begin with all tokens of another, over the same blocks.
   *
   * @throws BifocalException {@code INVALID_PARAMETER} when the row is not empty
   */
  public void share(int from, int to) {
    requireRow(from);
    requireEmpty(to);
    at(from)
        .forEach(
            row -> {
              rows[to] = new Row(row.lease().retain(), row.tokens(), row.published());
              entries
                  .asSlice((long) to * columns * Integer.BYTES, rowBytes())
                  .copyFrom(entries.asSlice((long) from * columns * Integer.BYTES, rowBytes()));
            });
  }

  /** Exchanges two rows, as a batch that is put into another order needs. */
  public void swap(int a, int b) {
    requireRow(a);
    requireRow(b);
    Row row = rows[a];
    rows[a] = rows[b];
    rows[b] = row;
    for (int i = 0; i < columns; i++) {
      long left = (long) a * columns + i;
      long right = (long) b * columns + i;
      int entry = entries.getAtIndex(ValueLayout.JAVA_INT, left);
      entries.setAtIndex(
          ValueLayout.JAVA_INT, left, entries.getAtIndex(ValueLayout.JAVA_INT, right));
      entries.setAtIndex(ValueLayout.JAVA_INT, right, entry);
    }
  }

  /** Gives a row's blocks back and empties it; harmless for an empty row. */
  public void release(int row) {
    at(row).forEach(r -> r.lease().close());
    rows[row] = null;
    entries.asSlice((long) row * columns * Integer.BYTES, rowBytes()).fill((byte) 0);
  }

  /** Gives all blocks and the table's memory back; closing twice is harmless. */
  @Override
  public void close() {
    if (!closed) {
      for (int row = 0; row < rows.length; row++) {
        release(row);
      }
      closed = true;
      arena.close();
    }
  }

  private BlockLease leaseFor(int row, int present, int tokens) {
    int more = blocksBehind(row, tokens);
    return at(row)
        .map(
            r -> {
              // The first block written is this row's last one, if there is room in it.
              r.lease().extend(more, tokens == 0 ? r.lease().size() : touched(r, present));
              return r.lease();
            })
        .getOrElse(() -> pool.lease(more));
  }

  private int touched(Row row, int present) {
    return Math.min(present / pool.spec().blockSize(), row.lease().size());
  }

  private long rowBytes() {
    return (long) columns * Integer.BYTES;
  }

  private Option<Row> at(int row) {
    requireRow(row);
    return Option.of(rows[row]);
  }

  private void requireEmpty(int row) {
    if (at(row).isDefined()) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER, "tokens of row " + row, tokens(row), "an empty row");
    }
  }

  private void requireRow(int row) {
    requireOpen();
    if (row < 0 || row >= rows.length) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "row of a block table", row, "below " + rows.length);
    }
  }

  private void requireOpen() {
    if (closed) {
      throw BifocalException.of(ErrorCode.CLOSED, "the block table was closed");
    }
  }
}
