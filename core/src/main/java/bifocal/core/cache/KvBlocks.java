package bifocal.core.cache;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.SequencedSet;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * The blocks of one layer group: who holds which, and what is in them. Blocks are counted
 * references; a block that nobody holds is free. A free block whose content was published is still
 * found by its key until it is leased for something else; those that nobody has held for longest go
 * first, and of one sequence the last. Block 0 is the null block, zero-filled and never leased.
 * Safe for any thread.
 */
public final class KvBlocks {
  private final String group;
  private final KvCacheSpec spec;
  private final Map<String, KvCacheView> views;
  private final Map<String, Long> offsets;
  private final BlockMemory access;
  private final AtomicBoolean closed;
  private final int[] references;
  private final BitSet free;
  private final BitSet written;
  private final @Nullable BlockKey[] keys;
  private final java.util.Map<BlockKey, Integer> known = new HashMap<>();
  private final SequencedSet<Integer> idle = new LinkedHashSet<>();

  KvBlocks(
      KvCachePool.Group group,
      Map<String, KvCacheView> views,
      Map<String, Long> offsets,
      BlockMemory access,
      boolean clean,
      AtomicBoolean closed) {
    this.group = group.name();
    this.spec = group.spec();
    this.views = views;
    this.offsets = offsets;
    this.access = access;
    this.closed = closed;
    this.references = new int[group.numBlocks()];
    this.keys = new BlockKey[group.numBlocks()];
    this.free = new BitSet(group.numBlocks());
    free.set(1, group.numBlocks());
    this.written = new BitSet(group.numBlocks());
    if (!clean) {
      written.set(1, group.numBlocks());
      zero(0);
    }
  }

  /** Name of the group. */
  public String name() {
    return group;
  }

  /** The group's contract. */
  public KvCacheSpec spec() {
    return spec;
  }

  /** Number of blocks, the null block included. */
  public int numBlocks() {
    return references.length;
  }

  /** Number of blocks that nobody holds, those with known content included. */
  public synchronized int free() {
    return free.cardinality() + idle.size();
  }

  /** Number of blocks that nobody holds and that are still found by their content. */
  public synchronized int cached() {
    return idle.size();
  }

  /**
   * Where each layer keeps a block.
   *
   * @throws BifocalException {@code BLOCK_OUT_OF_RANGE} or {@code CLOSED}
   */
  public Seq<BlockRecord> records(int block) {
    requireOpen();
    return Vector.ofAll(views)
        .map(
            view ->
                new BlockRecord(
                    view._1(),
                    offsets.get(view._1()).get() + view._2().blockOffset(block),
                    view._2().spec().blockBytes()));
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

  /**
   * Number of blocks, from a sequence's first on, whose content is in the cache.
   *
   * @throws BifocalException {@code INVALID_PARAMETER} for keys of another group, {@code CLOSED}
   */
  public synchronized int known(SequenceKeys sequence) {
    requireOpen();
    sequence.requireOf(this);
    return find(sequence, sequence.blocks()).length;
  }

  /**
   * Leases the blocks in which a sequence's beginning is cached; none when nothing is.
   *
   * @param most blocks at most
   * @throws BifocalException {@code INVALID_PARAMETER} for keys of another group, {@code NEGATIVE}
   *     or {@code CLOSED}
   */
  public synchronized BlockLease leaseKnown(SequenceKeys sequence, int most) {
    if (most < 0) {
      throw BifocalException.of(ErrorCode.NEGATIVE, "blocks to lease", most, "at least 0");
    }
    requireOpen();
    sequence.requireOf(this);
    int[] blocks = find(sequence, most);
    retain(blocks);
    return new BlockLease(this, blocks);
  }

  private int[] find(SequenceKeys sequence, int most) {
    int[] blocks = new int[Math.min(most, sequence.blocks())];
    for (int found = 0; found < blocks.length; found++) {
      Integer block = known.get(sequence.key(found));
      if (block == null) {
        return Arrays.copyOf(blocks, found);
      }
      blocks[found] = block;
    }
    return blocks;
  }

  /** Forgets what is in the blocks, as after a change of the model. Leases stay as they are. */
  public synchronized void forget() {
    known.clear();
    Arrays.fill(keys, null);
    idle.forEach(free::set);
    idle.clear();
  }

  /** Takes blocks for one more lease over them. */
  synchronized void retain(int[] blocks) {
    requireOpen();
    for (int block : blocks) {
      if (references[block]++ == 0) {
        idle.remove(block);
      }
    }
  }

  /** Gives references back; blocks without any are free, a sequence's last one first. */
  synchronized void release(int[] blocks) {
    for (int i = blocks.length - 1; i >= 0; i--) {
      int block = blocks[i];
      if (--references[block] == 0) {
        if (keys[block] == null) {
          free.set(block);
        } else {
          idle.add(block);
        }
      }
    }
  }

  /** Lets a block be found by its content, unless another with the same content is. */
  synchronized void publish(int block, BlockKey key) {
    requireOpen();
    if (keys[block] == null && known.putIfAbsent(key, block) == null) {
      keys[block] = key;
    }
  }

  private void unpublish(int block) {
    BlockKey key = keys[block];
    if (key != null) {
      known.remove(key);
      keys[block] = null;
    }
  }

  synchronized boolean shared(int block) {
    requireOpen();
    return references[block] > 1;
  }

  /**
   * Makes room behind a lease's blocks and, from the given index on, gives it blocks that nobody
   * else holds or finds, with the shared ones' content copied. All or nothing.
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
      } else {
        unpublish(blocks[i]);
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
    if (count > free()) {
      throw BifocalException.of(
              ErrorCode.POOL_EXHAUSTED, "free KV cache blocks of group " + group, free(), count)
          .withRemedy("let requests finish, or give the pool more blocks");
    }
    int[] taken = new int[count];
    for (int i = 0; i < count; i++) {
      int block = free.isEmpty() ? evict() : free.nextSetBit(1);
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

  private int evict() {
    int block = idle.removeFirst();
    unpublish(block);
    return block;
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
