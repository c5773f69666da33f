package bifocal.cuda.driver;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A range of device addresses that somebody else owns. Its segment has an address and a size, can
 * be sliced, and ends with the range; reading or writing it on the host throws {@link
 * WrongThreadException}.
 */
public final class DeviceRange implements AutoCloseable {
  static final int ORDINAL_ATTRIBUTE = 9;

  private final CudaContext context;
  private final Arena arena;
  private final MemorySegment segment;

  DeviceRange(CudaContext context, Arena arena, MemorySegment segment) {
    this.context = context;
    this.arena = arena;
    this.segment = segment;
    context.opened(this, "range of " + segment.byteSize() + " bytes of device memory");
  }

  public CudaContext context() {
    return context;
  }

  /** The addresses; alive until the range is closed. */
  public MemorySegment segment() {
    return segment;
  }

  public long address() {
    return segment.address();
  }

  public long bytes() {
    return segment.byteSize();
  }

  /** Ends the segment, and every slice and view of it; closing twice is harmless. */
  @Override
  public void close() {
    context.unmap(this, arena);
  }
}
