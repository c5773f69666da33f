package bifocal.cuda.driver;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Host memory that the driver keeps in place, so that the device can copy from it by itself. */
public final class PinnedAllocation {
  private static final int PORTABLE = 1;

  private final CudaContext context;
  private final String name;
  private final MemorySegment segment;
  private boolean freed;

  private PinnedAllocation(CudaContext context, String name, MemorySegment segment) {
    this.context = context;
    this.name = name;
    this.segment = segment;
    context.opened(this, name);
  }

  /**
   * Allocates; the content is unknown.
   *
   * @param name how messages call it
   * @param arena ends the segment; close it before {@link #free}
   */
  public static PinnedAllocation allocate(
      CudaContext context, String name, long bytes, Arena arena) {
    context.makeCurrent();
    try (Arena call = Arena.ofConfined()) {
      MemorySegment out = call.allocate(ValueLayout.JAVA_LONG);
      context.check(
          "cuMemHostAlloc for " + name, context.driver().hostAllocate(out, bytes, PORTABLE));
      return new PinnedAllocation(
          context, name, CudaDriver.segment(out.get(ValueLayout.JAVA_LONG, 0), bytes, arena));
    }
  }

  /** The memory, which the host reads and writes. */
  public MemorySegment segment() {
    return segment;
  }

  /** Frees the memory once the device reads it no more; doing so twice is harmless. */
  public synchronized void free() {
    if (freed) {
      return;
    }
    freed = true;
    context.released(this);
    context.releaseWhenIdle(
        "cuMemFreeHost of " + name, () -> context.driver().hostFree(segment.address()));
  }
}
