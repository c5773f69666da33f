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

  private record Row(BlockLease lease, int tokens) {}

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
    rows[row] = new Row(lease, present + tokens);
  }

  /**
   * Lets an empty row begin with all tokens of another, over the same blocks.
   *
   * @throws BifocalException {@code INVALID_PARAMETER} when the row is not empty
   */
  public void share(int from, int to) {
    requireRow(from);
    if (at(to).isDefined()) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER, "tokens of row " + to, tokens(to), "an empty row");
    }
    at(from)
        .forEach(
            row -> {
              rows[to] = new Row(row.lease().retain(), row.tokens());
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
