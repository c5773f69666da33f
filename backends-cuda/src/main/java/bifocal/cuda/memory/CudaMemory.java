package bifocal.cuda.memory;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaPool;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.driver.DeviceAllocation;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Memory of a context's device, up to a limit, allocated block by block or from a pool. Before the
 * driver is asked, an estimate of what is left decides: the limit less what is in use, and what the
 * driver says is free.
 *
 * <p>Safe for any thread.
 */
public final class CudaMemory implements DeviceMemory {
  private static final long ALIGNMENT = 256;

  private final CudaContext context;
  private final Source source;
  private final long limit;
  private final AtomicLong used = new AtomicLong();
  private final Map<Block, String> open = new ConcurrentHashMap<>();
  private volatile boolean closed;

  /**
   * Memory of a device.
   *
   * @param limit most bytes in use at once
   */
  public CudaMemory(CudaContext context, long limit) {
    this(context, new Direct(context), limit);
  }

  private CudaMemory(CudaContext context, Source source, long limit) {
    if (limit < 0) {
      throw BifocalException.of(
          ErrorCode.NEGATIVE, "limit of device memory", limit, "at least 0 bytes");
    }
    this.context = context;
    this.source = source;
    this.limit = limit;
  }

  /**
   * Memory of a pool. A block is acquired and given back in the order of a stream: closing one does
   * not wait, and its memory serves another only behind the work that may still read it.
   *
   * @param stream on which the blocks are used; it outlives them
   * @param limit most bytes in use at once
   * @throws BifocalException {@code UNSUPPORTED} for a device without pools, {@code NATIVE_FAILED}
   */
  public static CudaMemory pooled(CudaStream stream, long limit) {
    CudaContext context = stream.context();
    CudaPool pool = CudaPool.create(context);
    try {
      return new CudaMemory(context, new Pooled(pool, stream), limit);
    } catch (RuntimeException failure) {
      pool.close();
      throw failure;
    }
  }

  /** As much of a device's memory as there is. */
  public static CudaMemory unlimited(CudaContext context) {
    return new CudaMemory(context, Long.MAX_VALUE);
  }

  @Override
  public DeviceBlock acquire(String name, long bytes) {
    if (closed) {
      throw BifocalException.of(ErrorCode.CLOSED, "the device memory was closed");
    }
    if (bytes < 1 || bytes > Long.MAX_VALUE - ALIGNMENT) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER, "bytes of " + name, bytes, "at least 1, within 64 bits");
    }
    long footprint = Math.ceilDiv(bytes, ALIGNMENT) * ALIGNMENT;
    reserve(name, footprint);
    try {
      requireFree(name, footprint);
      Block block = new Block(name, footprint, source.allocate(name, bytes));
      open.put(block, name);
      return block;
    } catch (RuntimeException failure) {
      used.addAndGet(-footprint);
      throw failure;
    }
  }

  @Override
  public long available() {
    return Math.min(limit - used.get(), source.freeBytes());
  }

  /** Bytes in use, each block rounded up. */
  public long used() {
    return used.get();
  }

  @Override
  public void close() {
    if (!open.isEmpty()) {
      throw BifocalException.of(
          ErrorCode.IN_USE,
          "device memory",
          String.join(", ", open.values().stream().sorted().toList()),
          "all blocks closed");
    }
    closed = true;
    source.close();
  }

  private void reserve(String name, long footprint) {
    long before;
    do {
      before = used.get();
      if (footprint > limit - before) {
        throw exhausted(name, footprint, limit - before, "the limit set here");
      }
    } while (!used.compareAndSet(before, before + footprint));
  }

  private void requireFree(String name, long footprint) {
    long free = source.freeBytes();
    if (footprint > free) {
      throw exhausted(name, footprint, free, "the device");
    }
  }

  private BifocalException exhausted(String name, long wanted, long left, String by) {
    return BifocalException.of(
            ErrorCode.DEVICE_MEMORY_EXHAUSTED,
            "memory of " + context.place() + " for " + name,
            left + " bytes left by " + by,
            wanted + " bytes")
        .withRemedy("lower the number of blocks or the largest batch");
  }

  /** Where blocks come from. */
  private sealed interface Source {
    DeviceAllocation allocate(String name, long bytes);

    long freeBytes();

    void close();
  }

  private record Direct(CudaContext context) implements Source {
    @Override
    public DeviceAllocation allocate(String name, long bytes) {
      return DeviceAllocation.allocate(context, name, bytes);
    }

    @Override
    public long freeBytes() {
      return context.freeBytes();
    }

    @Override
    public void close() {}
  }

  private record Pooled(CudaPool pool, CudaStream stream) implements Source {
    @Override
    public DeviceAllocation allocate(String name, long bytes) {
      return pool.allocate(stream, name, bytes);
    }

    /** What the device has left, and what the pool keeps of it. */
    @Override
    public long freeBytes() {
      return pool.context().freeBytes() + pool.reservedBytes() - pool.usedBytes();
    }

    @Override
    public void close() {
      pool.close();
    }
  }

  private final class Block implements DeviceBlock {
    private final String name;
    private final long footprint;
    private final DeviceAllocation allocation;

    Block(String name, long footprint, DeviceAllocation allocation) {
      this.name = name;
      this.footprint = footprint;
      this.allocation = allocation;
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public MemorySegment segment() {
      return allocation.segment();
    }

    @Override
    public void close() {
      if (open.remove(this) != null) {
        used.addAndGet(-footprint);
        allocation.close();
      }
    }

    @Override
    public String toString() {
      return name + " (" + bytes() + " bytes of " + context.place() + ")";
    }
  }
}
