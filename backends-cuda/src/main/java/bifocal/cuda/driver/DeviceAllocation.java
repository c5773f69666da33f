package bifocal.cuda.driver;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Device memory that the driver allocated, and that {@link #close} gives back. */
public final class DeviceAllocation implements AutoCloseable {
  private final CudaContext context;
  private final String name;
  private final DeviceRange range;
  private boolean closed;

  private DeviceAllocation(CudaContext context, String name, DeviceRange range) {
    this.context = context;
    this.name = name;
    this.range = range;
    context.opened(this, name);
  }

  /**
   * Allocates; the content is unknown.
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
      long address = out.get(ValueLayout.JAVA_LONG, 0);
      try {
        return new DeviceAllocation(context, name, context.ownRange(address, bytes));
      } catch (RuntimeException | Error failure) {
        context.driver().memoryFree(address);
        throw failure;
      }
    }
  }

  /** The addresses, which the host cannot touch. */
  public MemorySegment segment() {
    return range.segment();
  }

  /** Frees the memory after everything launched before; closing twice is harmless. */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    long address = range.address();
    range.close();
    context.released(this);
    context.release("cuMemFree of " + name, () -> context.driver().memoryFree(address));
  }
}
