package bifocal.cuda.driver;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** A mark in a stream's queue: one made here, or the host engine's, which is only used. */
public final class CudaEvent implements AutoCloseable {
  private static final int WITH_TIME = 0;
  private static final int WITHOUT_TIME = 2;

  private final CudaContext context;
  private final long handle;
  private final boolean owned;
  private boolean closed;

  private CudaEvent(CudaContext context, long handle, boolean owned) {
    this.context = context;
    this.handle = handle;
    this.owned = owned;
  }

  /** An event for order alone, which costs the device least. */
  public static CudaEvent create(CudaContext context) {
    return create(context, WITHOUT_TIME);
  }

  /** An event whose time can be asked for. */
  public static CudaEvent timed(CudaContext context) {
    return create(context, WITH_TIME);
  }

  /**
   * Uses an event of the host engine, for instance the one that its copies record.
   *
   * @param handle the host's {@code CUevent}; it outlives this object
   * @throws BifocalException {@code INVALID_PARAMETER} for 0
   */
  public static CudaEvent adopt(CudaContext context, long handle) {
    context.requireUsable("cuEventQuery");
    if (handle == 0) {
      throw BifocalException.of(ErrorCode.INVALID_PARAMETER, "adopted CUDA event", "0", "an event");
    }
    return new CudaEvent(context, handle, false);
  }

  private static CudaEvent create(CudaContext context, int flags) {
    context.makeCurrent();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
      context.check("cuEventCreate", context.driver().eventCreate(out, flags));
      CudaEvent event = new CudaEvent(context, out.get(ValueLayout.JAVA_LONG, 0), true);
      context.opened(event, "event");
      return event;
    }
  }

  /** The {@code CUevent}. */
  public long handle() {
    return handle;
  }

  /** Puts the mark behind what is in the queue now. */
  public void record(CudaStream stream) {
    requireOpen("cuEventRecord");
    stream.requireOpen("cuEventRecord");
    context.check("cuEventRecord", context.driver().eventRecord(handle, stream.handle()));
  }

  /** Whether the device has passed the mark; an event that was never recorded counts as passed. */
  public boolean done() {
    requireOpen("cuEventQuery");
    context.makeCurrent();
    int code = context.driver().eventQuery(handle);
    if (code == CudaError.NOT_READY) {
      return false;
    }
    context.check("cuEventQuery", code);
    return true;
  }

  /** Waits until the device has passed the mark. */
  public void synchronize() {
    requireOpen("cuEventSynchronize");
    context.makeCurrent();
    context.check("cuEventSynchronize", context.driver().eventSynchronize(handle));
  }

  /** Milliseconds from an earlier mark to this one; both were made with time and are passed. */
  public float millisecondsSince(CudaEvent start) {
    requireOpen("cuEventElapsedTime");
    start.requireOpen("cuEventElapsedTime");
    context.makeCurrent();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.JAVA_FLOAT);
      context.check(
          "cuEventElapsedTime", context.driver().eventElapsedTime(out, start.handle, handle));
      return out.get(ValueLayout.JAVA_FLOAT, 0);
    }
  }

  /** Destroys an event that was made here; closing twice is harmless. */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    context.released(this);
    if (owned) {
      context.release("cuEventDestroy", () -> context.driver().eventDestroy(handle));
    }
  }

  void requireOpen(String function) {
    context.requireUsable(function);
    if (closed) {
      throw BifocalException.of(ErrorCode.CLOSED, "the CUDA event was closed");
    }
  }
}
