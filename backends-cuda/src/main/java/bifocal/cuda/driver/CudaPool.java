package bifocal.cuda.driver;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Device memory that is kept for the next allocation. Memory is allocated and given back in the
 * order of a stream: nobody waits, and the device hands it out again only once it has passed
 * whatever was launched on that stream before.
 *
 * <p>Safe for any thread.
 */
public final class CudaPool implements AutoCloseable {
  /** {@code CUmemPoolProps}. */
  private static final long PROPERTIES_BYTES = 88;

  private static final int PINNED = 1;
  private static final int ALLOCATION_TYPE = 0;
  private static final int DEVICE = 1;
  private static final int LOCATION_TYPE = 8;
  private static final int LOCATION_ID = 12;
  private static final int RELEASE_THRESHOLD = 4;
  private static final int RESERVED = 5;
  private static final int USED = 7;

  private final CudaContext context;
  private final long handle;
  private final AtomicInteger allocations = new AtomicInteger();
  private boolean closed;

  private CudaPool(CudaContext context, long handle) {
    this.context = context;
    this.handle = handle;
    context.opened(this, "memory pool");
  }

  /**
   * A pool that keeps what it was ever given, until it is closed.
   *
   * @throws BifocalException {@code UNSUPPORTED} for a device without pools, {@code NATIVE_FAILED},
   *     {@code DEVICE_LOST}
   */
  public static CudaPool create(CudaContext context) {
    if (!context.device().memoryPools()) {
      throw BifocalException.of(
          ErrorCode.UNSUPPORTED,
          "memory pool of " + context.place(),
          "none",
          "a device with pools");
    }
    context.makeCurrent();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment properties = arena.allocate(PROPERTIES_BYTES, Long.BYTES);
      properties.set(ValueLayout.JAVA_INT, ALLOCATION_TYPE, PINNED);
      properties.set(ValueLayout.JAVA_INT, LOCATION_TYPE, DEVICE);
      properties.set(ValueLayout.JAVA_INT, LOCATION_ID, context.device().ordinal());
      MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
      context.check("cuMemPoolCreate", context.driver().poolCreate(out, properties));
      CudaPool pool = new CudaPool(context, out.get(ValueLayout.JAVA_LONG, 0));
      try {
        pool.keepEverything(arena);
        return pool;
      } catch (RuntimeException failure) {
        CudaContext.closeSuppressed(pool, failure);
        throw failure;
      }
    }
  }

  private void keepEverything(Arena arena) {
    MemorySegment unlimited = arena.allocateFrom(ValueLayout.JAVA_LONG, -1L);
    context.check(
        "cuMemPoolSetAttribute",
        context.driver().poolSetAttribute(handle, RELEASE_THRESHOLD, unlimited));
  }

  public CudaContext context() {
    return context;
  }

  /**
   * Allocates in the order of a stream; the content is unknown. Other streams may use the memory
   * once they waited for that one, and closing it orders it behind that stream's work, so whoever
   * used it elsewhere lets the stream wait first.
   *
   * @param name how messages call it
   * @throws BifocalException {@code DEVICE_MEMORY_EXHAUSTED}, {@code DEVICE_LOST}, {@code
   *     NATIVE_FAILED}, {@code CLOSED}
   */
  public DeviceAllocation allocate(CudaStream stream, String name, long bytes) {
    requireOpen();
    stream.requireOpen("cuMemAllocFromPoolAsync");
    context.makeCurrent();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
      context.check(
          "cuMemAllocFromPoolAsync for " + name,
          context.driver().allocateFromPool(out, bytes, handle, stream.handle()));
      allocations.incrementAndGet();
      return DeviceAllocation.of(
          context,
          name,
          out.get(ValueLayout.JAVA_LONG, 0),
          bytes,
          address -> giveBack(stream, name, address));
    }
  }

  private void giveBack(CudaStream stream, String name, long address) {
    allocations.decrementAndGet();
    if (stream.isOpen()) {
      context.release(
          "cuMemFreeAsync of " + name,
          () -> context.driver().freeInOrder(address, stream.handle()));
    } else {
      context.releaseWhenIdle("cuMemFree of " + name, () -> context.driver().memoryFree(address));
    }
  }

  /** Bytes that the pool has of the device, in use or not. */
  public long reservedBytes() {
    return attribute(RESERVED);
  }

  /** Bytes of them that are allocated. */
  public long usedBytes() {
    return attribute(USED);
  }

  private long attribute(int attribute) {
    requireOpen();
    context.makeCurrent();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
      context.check(
          "cuMemPoolGetAttribute", context.driver().poolGetAttribute(handle, attribute, out));
      return out.get(ValueLayout.JAVA_LONG, 0);
    }
  }

  private void requireOpen() {
    context.requireUsable("cuMemAllocFromPoolAsync");
    if (closed) {
      throw BifocalException.of(ErrorCode.CLOSED, "the memory pool was closed");
    }
  }

  /**
   * Gives everything back to the device once launches under way are done; closing twice is
   * harmless.
   *
   * @throws BifocalException {@code IN_USE} while memory of it is allocated
   */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    if (allocations.get() > 0) {
      throw BifocalException.of(
          ErrorCode.IN_USE, "memory pool", allocations.get() + " allocations", "all closed");
    }
    closed = true;
    context.released(this);
    context.releaseWhenIdle("cuMemPoolDestroy", () -> context.driver().poolDestroy(handle));
  }
}
