package bifocal.cuda.triton;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.memory.MetadataStaging;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** Pinned memory for what a step uploads, which grows with the largest step seen. */
public final class StepStaging implements AutoCloseable {
  private static final int SLOTS = 3;
  private static final long LEAST = 1 << 16;

  private final CudaContext context;
  private final String owner;
  private @Nullable MetadataStaging staging;
  private long size;
  private boolean closed;

  /**
   * @param owner how messages call whoever closes it
   */
  public StepStaging(CudaContext context, String owner) {
    this.context = context;
    this.owner = owner;
  }

  /** Pinned memory of at least so many bytes, until it is taken again. */
  public Slot take(long bytes) {
    if (closed) {
      throw BifocalException.of(ErrorCode.CLOSED, owner + " was closed");
    }
    MetadataStaging present = staging;
    if (present == null || bytes > size) {
      present = grow(bytes);
    }
    return new Slot(present.take());
  }

  private MetadataStaging grow(long bytes) {
    MetadataStaging before = staging;
    staging = null;
    if (before != null) {
      before.close();
    }
    size = Math.max(LEAST, Long.highestOneBit(bytes) * 2);
    MetadataStaging larger = new MetadataStaging(context, size, SLOTS);
    staging = larger;
    return larger;
  }

  /** One step's pinned memory. */
  public record Slot(MetadataStaging.Slot slot) {
    public MemorySegment host() {
      return slot.host();
    }

    /** Copies as many bytes as the target has, in the order of the stream. */
    public void upload(CudaStream stream, MemorySegment to) {
      slot.upload(stream, to);
    }
  }

  @Override
  public void close() {
    closed = true;
    MetadataStaging present = staging;
    staging = null;
    if (present != null) {
      present.close();
    }
  }
}
