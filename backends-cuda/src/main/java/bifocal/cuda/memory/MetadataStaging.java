package bifocal.cuda.memory;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cuda.driver.Closing;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaEvent;
import bifocal.cuda.driver.CudaStream;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * Pinned memory in which the metadata of a step is put together, and copied to the device by one
 * copy. There are a few slots in turn; one is handed out again when the device has read it.
 *
 * <p>Not thread-safe: it belongs to the thread that runs steps.
 */
public final class MetadataStaging implements AutoCloseable {
  private final CudaContext context;
  private final List<Slot> slots = new ArrayList<>();
  private int next;
  private boolean closed;

  /**
   * Allocates the slots.
   *
   * @param bytes most bytes of one step's metadata
   * @param count slots; with two, one step is put together while the device reads the other
   * @throws BifocalException {@code INVALID_PARAMETER}, {@code DEVICE_MEMORY_EXHAUSTED}, {@code
   *     NATIVE_FAILED}
   */
  public MetadataStaging(CudaContext context, long bytes, int count) {
    if (bytes < 1 || count < 1) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "staging of metadata",
          count + " slots of " + bytes + " bytes",
          "at least 1 of at least 1");
    }
    this.context = context;
    try {
      for (int i = 0; i < count; i++) {
        slots.add(Slot.allocate(context, i, bytes));
      }
    } catch (RuntimeException failure) {
      closeSlots(Closing.after(failure));
      throw failure;
    }
  }

  /**
   * The next slot, for the caller alone until it is taken again. Waits until the device has read
   * what was uploaded from it before.
   *
   * @throws BifocalException {@code CLOSED}, {@code DEVICE_LOST}
   */
  public Slot take() {
    if (closed) {
      throw BifocalException.of(ErrorCode.CLOSED, "the staging of metadata was closed");
    }
    Slot slot = slots.get(next);
    next = (next + 1) % slots.size();
    slot.awaitRead();
    return slot;
  }

  /** Waits for copies under way and frees the slots; closing twice is harmless. */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    Closing closing = new Closing();
    closeSlots(closing);
    closing.end();
  }

  private void closeSlots(Closing closing) {
    for (Slot slot : slots) {
      if (context.lost().isEmpty()) {
        closing.then(slot::awaitRead);
      }
      closing.then(slot.read::close).then(slot.pinned::close);
    }
  }

  /** Pinned memory of one step. */
  public static final class Slot {
    private final CudaContext context;
    private final PinnedBlock pinned;
    private final CudaEvent read;
    private final MemorySegment host;
    private boolean uploaded;
    private boolean marked;

    private Slot(CudaContext context, PinnedBlock pinned, CudaEvent read) {
      this.context = context;
      this.pinned = pinned;
      this.read = read;
      this.host = pinned.segment();
    }

    private static Slot allocate(CudaContext context, int index, long bytes) {
      PinnedBlock pinned = PinnedBlock.allocate(context, "metadata staging " + index, bytes);
      try {
        return new Slot(context, pinned, CudaEvent.create(context));
      } catch (RuntimeException failure) {
        try {
          pinned.close();
        } catch (RuntimeException second) {
          failure.addSuppressed(second);
        }
        throw failure;
      }
    }

    /** Where the metadata is written. */
    public MemorySegment host() {
      return host;
    }

    /**
     * Copies the start of the slot to the device, in the order of the stream.
     *
     * @param device where to; as many bytes as it has are copied
     * @throws BifocalException {@code MEMORY_TOO_SMALL}, {@code NATIVE_FAILED}
     */
    public void upload(CudaStream stream, MemorySegment device) {
      stream.copyToDevice(host, 0, device, 0, device.byteSize());
      uploaded = true;
      marked = false;
      read.record(stream);
      marked = true;
    }

    private void awaitRead() {
      if (uploaded) {
        if (marked) {
          read.synchronize();
        } else {
          context.synchronize();
        }
        uploaded = false;
      }
    }
  }
}
