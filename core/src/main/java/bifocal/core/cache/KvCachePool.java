package bifocal.core.cache;

import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.ffi.HugePages;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The blocks of all layer groups in one piece of memory. The pool belongs to the engine that opened
 * it, and that engine closes it. Memory the pool allocated goes with it; memory of a host stays the
 * host's.
 *
 * <p>Each group has block numbers of its own. A block number stands for one record in every layer
 * of its group; the records of one layer lie one behind the other. Safe for any thread.
 */
public final class KvCachePool implements AutoCloseable {
  /** Alignment of each layer's first record, in bytes. */
  public static final long ALIGNMENT = 256;

  private final MemorySegment memory;
  private final Runnable release;
  private final Map<String, KvBlocks> groups;
  private final AtomicBoolean closed = new AtomicBoolean();
  private boolean released;

  /**
   * Blocks wanted for one layer group.
   *
   * @param name of the group, unique in the pool
   * @param layers names of the group's layers, unique in the group
   * @param spec the group's contract
   * @param numBlocks blocks, the null block included: at least 2
   */
  public record Group(String name, Seq<String> layers, KvCacheSpec spec, int numBlocks) {
    public Group {
      if (numBlocks < 2) {
        throw BifocalException.of(
            ErrorCode.INVALID_PARAMETER,
            "blocks of group " + name,
            numBlocks,
            "at least 2, the null block and one to lease");
      }
      if (layers.isEmpty() || layers.distinct().size() != layers.size()) {
        throw BifocalException.of(
            ErrorCode.INVALID_PARAMETER,
            "layers of group " + name,
            layers.mkString(", "),
            "at least one, each named once");
      }
    }

    private long layerBytes() {
      long bytes = Math.multiplyExact(spec.blockBytes(), (long) numBlocks);
      return Math.multiplyExact(Math.ceilDiv(bytes, ALIGNMENT), ALIGNMENT);
    }
  }

  private KvCachePool(
      MemorySegment memory,
      Device device,
      BlockMemory access,
      boolean clean,
      Seq<Group> groups,
      Runnable release) {
    this.release = release;
    Map<String, KvBlocks> placed = LinkedHashMap.empty();
    long offset = 0;
    for (Group group : groups) {
      Map<String, KvCacheView> views = LinkedHashMap.empty();
      Map<String, Long> offsets = LinkedHashMap.empty();
      for (String layer : group.layers()) {
        MemorySegment records = memory.asSlice(offset, group.layerBytes());
        views =
            views.put(
                layer,
                KvCacheView.wrap(
                    records, group.spec(), device, group.numBlocks(), group.spec().blockBytes()));
        offsets = offsets.put(layer, offset);
        offset += group.layerBytes();
      }
      placed = placed.put(group.name(), new KvBlocks(group, views, offsets, access, clean, closed));
    }
    this.memory = memory;
    this.groups = placed;
  }

  /**
   * Bytes that a pool of these groups needs.
   *
   * @throws BifocalException {@code INVALID_PARAMETER} for two groups of one name, {@code OVERFLOW}
   */
  public static long bytes(Seq<Group> groups) {
    if (groups.isEmpty() || groups.map(Group::name).distinct().size() != groups.size()) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "groups of a KV cache pool",
          groups.map(Group::name).mkString(", "),
          "at least one, each named once");
    }
    try {
      long bytes = 0;
      for (Group group : groups) {
        bytes =
            Math.addExact(
                bytes, Math.multiplyExact(group.layerBytes(), (long) group.layers().size()));
      }
      return bytes;
    } catch (ArithmeticException e) {
      throw BifocalException.of(ErrorCode.OVERFLOW, "size of a KV cache pool").causedBy(e);
    }
  }

  /**
   * Allocates host memory for the groups; it is zero-filled and released by {@link #close}.
   *
   * @throws BifocalException {@code OVERFLOW}, {@code INVALID_PARAMETER}, or {@code
   *     MEMORY_TOO_SMALL} when the host has not enough
   */
  @SuppressWarnings("MustBeClosedChecker") // the pool closes its arena
  public static KvCachePool allocate(Seq<Group> groups) {
    long bytes = bytes(groups);
    Arena arena = Arena.ofShared();
    try {
      MemorySegment memory = HugePages.allocate(arena, bytes, ALIGNMENT);
      return new KvCachePool(memory, Device.HOST, BlockMemory.HOST, true, groups, arena::close);
    } catch (OutOfMemoryError | IllegalArgumentException e) {
      arena.close();
      throw BifocalException.of(
              ErrorCode.MEMORY_TOO_SMALL, "memory of a KV cache pool", "refused", bytes + " bytes")
          .withRemedy("lower the number of blocks")
          .causedBy(e);
    }
  }

  /**
   * Divides memory that the host owns and releases after it closed the pool. Its content is taken
   * for unknown.
   *
   * @throws BifocalException {@code MEMORY_TOO_SMALL}, {@code OVERFLOW} or {@code
   *     INVALID_PARAMETER}
   */
  public static KvCachePool over(
      MemorySegment memory, Device device, BlockMemory access, Seq<Group> groups) {
    long bytes = bytes(groups);
    if (memory.byteSize() < bytes) {
      throw BifocalException.of(
          ErrorCode.MEMORY_TOO_SMALL,
          "memory of a KV cache pool",
          memory.byteSize() + " bytes",
          bytes + " bytes");
    }
    return new KvCachePool(memory, device, access, false, groups, () -> {});
  }

  /**
   * The memory of all groups, in which {@link KvBlocks#records} says where a block lies.
   *
   * @throws BifocalException {@code CLOSED}
   */
  public MemorySegment memory() {
    if (closed.get()) {
      throw BifocalException.of(ErrorCode.CLOSED, "the KV cache pool was closed");
    }
    return memory;
  }

  /**
   * Blocks of one group.
   *
   * @throws BifocalException {@code INVALID_PARAMETER} for an unknown group, {@code CLOSED}
   */
  public KvBlocks group(String name) {
    if (closed.get()) {
      throw BifocalException.of(ErrorCode.CLOSED, "the KV cache pool was closed");
    }
    return groups
        .get(name)
        .getOrElseThrow(
            () ->
                BifocalException.of(
                    ErrorCode.INVALID_PARAMETER,
                    "group of a KV cache pool",
                    name,
                    groups.keySet().mkString(", ")));
  }

  /**
   * Ends every lease and releases memory the pool allocated; closing twice is harmless.
   *
   * @throws BifocalException {@code IN_USE} while a native call reads or writes the memory; the
   *     pool then stays closed for leases, and a later close releases the memory
   */
  @Override
  public synchronized void close() {
    closed.set(true);
    if (released) {
      return;
    }
    groups.values().forEach(KvBlocks::awaitQuiet);
    try {
      release.run();
      released = true;
    } catch (IllegalStateException e) {
      throw BifocalException.of(
              ErrorCode.IN_USE, "a native call still uses the KV cache pool's memory")
          .withRemedy("let the running step end, then close the pool again")
          .causedBy(e);
    }
  }
}
