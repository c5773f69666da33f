package bifocal.core.cache;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Map;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.BitSet;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The blocks of one layer group: who holds which. Blocks are counted references; a block that
 * nobody holds is free. Block 0 is the null block, zero-filled and never leased. Safe for any
 * thread.
 */
public final class KvBlocks {
  private final String group;
  private final KvCacheSpec spec;
  private final Map<String, KvCacheView> views;
  private final BlockMemory access;
  private final AtomicBoolean closed;
  private final int[] references;
  private final BitSet free;
  private final BitSet written;

  KvBlocks(
      KvCachePool.Group group,
      Map<String, KvCacheView> views,
      BlockMemory access,
      boolean clean,
      AtomicBoolean closed) {
    this.group = group.name();
    this.spec = group.spec();
    this.views = views;
    this.access = access;
    this.closed = closed;
    this.references = new int[group.numBlocks()];
    this.free = new BitSet(group.numBlocks());
    free.set(1, group.numBlocks());
    this.written = new BitSet(group.numBlocks());
    if (!clean) {
      written.set(1, group.numBlocks());
      zero(0);
    }
  }

  /** The group's contract. */
  public KvCacheSpec spec() {
    return spec;
  }

  /** Number of blocks, the null block included. */
  public int numBlocks() {
    return references.length;
  }

  /** Number of blocks that nobody holds. */
  public synchronized int free() {
    return free.cardinality();
  }

  /**
   * One layer's records.
   *
   * @throws BifocalException {@code INVALID_PARAMETER} for an unknown layer, {@code CLOSED}
   */
  public KvCacheView view(String layer) {
    requireOpen();
    return views
        .get(layer)
        .getOrElseThrow(
            () ->
                BifocalException.of(
                    ErrorCode.INVALID_PARAMETER,
                    "layer of group " + group,
                    layer,
                    views.keySet().mkString(", ")));
  }

  /**
   * Leases blocks, lowest numbers first. Their records are zero: no rubbish of an earlier holder,
   * which may be NaN, reaches a kernel that reads a whole block.
   *
   * @throws BifocalException {@code POOL_EXHAUSTED}, with nothing leased, {@code NEGATIVE} or
   *     {@code CLOSED}
   */
  public synchronized BlockLease lease(int count) {
    requireOpen();
    if (count < 0) {
      throw BifocalException.of(ErrorCode.NEGATIVE, "blocks to lease", count, "at least 0");
    }
    return new BlockLease(this, take(count));
  }

  /** Takes blocks for one more lease over them. */
  synchronized void retain(int[] blocks) {
    requireOpen();
    for (int block : blocks) {
      references[block]++;
    }
  }

  /** Gives references back; blocks without any are free. */
  synchronized void release(int[] blocks) {
    for (int block : blocks) {
      if (--references[block] == 0) {
        free.set(block);
      }
    }
  }

  synchronized boolean shared(int block) {
    requireOpen();
    return references[block] > 1;
  }

  /**
   * Makes room behind a lease's blocks and, from the given index on, gives it blocks that nobody
   * else holds, with the shared ones' content copied. All or nothing.
   */
  synchronized int[] extend(int[] blocks, int more, int writableFrom) {
    requireOpen();
    int copies = 0;
    for (int i = writableFrom; i < blocks.length; i++) {
      copies += references[blocks[i]] > 1 ? 1 : 0;
    }
    int[] taken = take(Math.addExact(copies, more));
    int[] extended = Arrays.copyOf(blocks, blocks.length + more);
    for (int i = writableFrom; i < blocks.length; i++) {
      if (references[blocks[i]] > 1) {
        extended[i] = taken[--copies];
        copy(blocks[i], extended[i]);
        references[blocks[i]]--;
      }
    }
    System.arraycopy(taken, taken.length - more, extended, blocks.length, more);
    return extended;
  }

  /** Returns when no lease is being made: what began before the pool was closed has ended. */
  synchronized void awaitQuiet() {
    // Entering is all there is to do.
  }

  void requireOpen() {
    if (closed.get()) {
      throw BifocalException.of(ErrorCode.CLOSED, "the KV cache pool was closed");
    }
  }

  private int[] take(int count) {
    if (count > free.cardinality()) {
      throw BifocalException.of(
              ErrorCode.POOL_EXHAUSTED,
              "free KV cache blocks of group " + group,
              free.cardinality(),
              count)
          .withRemedy("let requests finish, or give the pool more blocks");
    }
    int[] taken = new int[count];
    int block = 0;
    for (int i = 0; i < count; i++) {
      block = free.nextSetBit(block + 1);
      taken[i] = block;
      free.clear(block);
      references[block] = 1;
      if (written.get(block)) {
        zero(block);
      }
      written.set(block);
    }
    return taken;
  }

  private void zero(int block) {
    views.values().forEach(view -> access.zero(record(view, block)));
  }

  private void copy(int from, int to) {
    views.values().forEach(view -> access.copy(record(view, from), record(view, to)));
  }

  private static MemorySegment record(KvCacheView view, int block) {
    return view.memory().asSlice(view.blockOffset(block), view.spec().blockBytes());
  }
}
