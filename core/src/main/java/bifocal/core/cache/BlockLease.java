package bifocal.core.cache;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.util.Arrays;

/**
 * The right to some blocks of one group, in the order of a sequence. Several leases may hold one
 * block, as sequences with a common beginning do; who wants to write such a block asks for {@link
 * #writable} first. Safe for any thread, and closed by whoever got it.
 */
public final class BlockLease implements AutoCloseable {
  private final KvBlocks pool;
  private int[] blocks;
  private boolean over;

  BlockLease(KvBlocks pool, int[] blocks) {
    this.pool = pool;
    this.blocks = blocks;
  }

  /** Number of blocks. */
  public synchronized int size() {
    return blocks.length;
  }

  /**
   * Number of the {@code i}-th block.
   *
   * @throws BifocalException {@code CLOSED} or {@code BLOCK_NOT_LEASED}
   */
  public synchronized int block(int i) {
    requireOpen();
    requireIndex(i);
    return blocks[i];
  }

  /** Whether another lease holds the {@code i}-th block too. */
  public synchronized boolean shared(int i) {
    requireOpen();
    requireIndex(i);
    return pool.shared(blocks[i]);
  }

  /** Another lease over the same blocks, to be closed by itself. */
  public synchronized BlockLease retain() {
    requireOpen();
    pool.retain(blocks);
    return new BlockLease(pool, blocks.clone());
  }

  /**
   * Makes the {@code i}-th block this lease's alone: a block that others hold too is replaced by a
   * copy of it, in every layer, and one that nobody else holds is no longer found by its content.
   *
   * @return the number of the block, to go into the block table
   * @throws BifocalException {@code POOL_EXHAUSTED}, with nothing changed
   */
  public synchronized int writable(int i) {
    requireOpen();
    requireIndex(i);
    int[] one = pool.extend(new int[] {blocks[i]}, 0, 0);
    blocks[i] = one[0];
    return one[0];
  }

  /**
   * Lets the {@code i}-th block be found by its content, by {@link KvBlocks#leaseKnown}, also after
   * it was given back. To be called once the block is full in every layer. Of blocks with one
   * content the first published is found.
   *
   * @throws BifocalException {@code CLOSED} or {@code BLOCK_NOT_LEASED}
   */
  public synchronized void publish(int i, BlockKey key) {
    requireOpen();
    requireIndex(i);
    pool.publish(blocks[i], key);
  }

  /**
   * Adds blocks at the end.
   *
   * @throws BifocalException {@code POOL_EXHAUSTED}, with nothing leased
   */
  public synchronized void extend(int more) {
    extend(more, blocks.length);
  }

  /** Adds blocks at the end and makes those from an index on this lease's alone. */
  synchronized void extend(int more, int writableFrom) {
    requireOpen();
    if (more < 0) {
      throw BifocalException.of(ErrorCode.NEGATIVE, "blocks to lease", more, "at least 0");
    }
    blocks = pool.extend(blocks, more, writableFrom);
  }

  /** Gives the blocks back; closing twice, or after the pool was closed, is harmless. */
  @Override
  public synchronized void close() {
    if (!over) {
      over = true;
      pool.release(blocks);
    }
  }

  private void requireOpen() {
    if (over) {
      throw BifocalException.of(ErrorCode.CLOSED, "the lease was closed");
    }
    pool.requireOpen();
  }

  private void requireIndex(int i) {
    if (i < 0 || i >= blocks.length) {
      throw BifocalException.of(
          ErrorCode.BLOCK_NOT_LEASED, "block of a lease", i, "below " + blocks.length);
    }
  }

  @Override
  public synchronized String toString() {
    return "blocks " + Arrays.toString(blocks) + (over ? " (given back)" : "");
  }
}
