package bifocal.cuda.driver;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.LongConsumer;

/** Device memory that the driver allocated, and that {@link #close} gives back. */
public final class DeviceAllocation implements AutoCloseable {
  private final CudaContext context;
  private final DeviceRange range;
  private final LongConsumer giveBack;
  private boolean closed;

  private DeviceAllocation(CudaContext context, DeviceRange range, LongConsumer giveBack) {
    this.context = context;
    this.range = range;
    this.giveBack = giveBack;
  }

  /**
   * Allocates; the content is unknown. Closing waits for all launches of the context.
   *
   * @param name how messages call it
   * @throws bifocal.core.error.BifocalException {@code DEVICE_MEMORY_EXHAUSTED}, {@code
   *     DEVICE_LOST}, {@code NATIVE_FAILED}
   */
  public static DeviceAllocation allocate(CudaContext context, String name, long bytes) {
    context.makeCurrent();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
      context.check("cuMemAlloc for " + name, context.driver().memoryAllocate(out, bytes));
      return of(
          context,
          name,
          out.get(ValueLayout.JAVA_LONG, 0),
          bytes,
          address ->
              context.releaseWhenIdle(
                  "cuMemFree of " + name, () -> context.driver().memoryFree(address)));
    }
  }

  /** Memory that was allocated at an address, and how it is given back. */
  static DeviceAllocation of(
      CudaContext context, String name, long address, long bytes, LongConsumer giveBack) {
    try {
      DeviceAllocation allocation =
          new DeviceAllocation(context, context.ownRange(address, bytes), giveBack);
      context.opened(allocation, name);
      return allocation;
    } catch (RuntimeException | Error failure) {
      CudaContext.closeSuppressed(() -> giveBack.accept(address), failure);
      throw failure;
    }
  }

  /** The addresses, which the host cannot touch. */
  public MemorySegment segment() {
    return range.segment();
  }

  /** Gives the memory back; closing twice is harmless. */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    long address = range.address();
    range.close();
    context.released(this);
    giveBack.accept(address);
  }
}
