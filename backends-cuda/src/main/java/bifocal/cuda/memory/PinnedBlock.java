package bifocal.cuda.memory;

import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.PinnedAllocation;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Host memory that the device copies from by itself, owned by whoever allocated it. */
public final class PinnedBlock implements AutoCloseable {
  private final Arena arena;
  private final PinnedAllocation allocation;
  private boolean closed;

  private PinnedBlock(Arena arena, PinnedAllocation allocation) {
    this.arena = arena;
    this.allocation = allocation;
  }

  /**
   * Allocates; the content is unknown.
   *
   * @throws bifocal.core.error.BifocalException {@code DEVICE_MEMORY_EXHAUSTED}, {@code
   *     DEVICE_LOST}, {@code NATIVE_FAILED}
   */
  @SuppressWarnings("MustBeClosedChecker") // the block closes its arena
  public static PinnedBlock allocate(CudaContext context, String name, long bytes) {
    Arena arena = Arena.ofShared();
    try {
      return new PinnedBlock(arena, PinnedAllocation.allocate(context, name, bytes, arena));
    } catch (RuntimeException | Error failure) {
      arena.close();
      throw failure;
    }
  }

  /** The memory, for any thread, until the block is closed. */
  public MemorySegment segment() {
    return allocation.segment();
  }

  /** Frees the memory; every copy from it has run by then. Closing twice is harmless. */
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      arena.close();
      allocation.free();
    }
  }
}
