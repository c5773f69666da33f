package bifocal.cuda.driver;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;

/**
 * A queue of work for the device: one made here, or the host engine's, which is only used.
 *
 * <p>Methods that put work into the queue expect the context to be current, as it is on the thread
 * of a {@link CudaLaunchContext}; they allocate nothing.
 */
public final class CudaStream implements AutoCloseable {
  private static final int NON_BLOCKING = 1;

  private final CudaContext context;
  private final long handle;
  private final boolean owned;
  private @Nullable StreamFork fork;
  private volatile boolean closed;

  private CudaStream(CudaContext context, long handle, boolean owned) {
    this.context = context;
    this.handle = handle;
    this.owned = owned;
  }

  /**
   * Makes a stream that does not wait for the legacy default stream.
   *
   * @throws BifocalException {@code NATIVE_FAILED}, {@code DEVICE_LOST}
   */
  public static CudaStream create(CudaContext context) {
    context.makeCurrent();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
      context.check("cuStreamCreate", context.driver().streamCreate(out, NON_BLOCKING));
      CudaStream stream = new CudaStream(context, out.get(ValueLayout.JAVA_LONG, 0), true);
      context.opened(stream, "stream");
      return stream;
    }
  }

  /**
   * Uses a stream of the host engine. Adopt a stream once and close it at the end: the host's
   * stream stays, what was made beside it is given back.
   *
   * @param handle the host's {@code CUstream}; it outlives this object; 0 is the legacy default
   *     stream
   * @throws BifocalException {@code DEVICE_MISMATCH} when it belongs to another context, {@code
   *     NATIVE_FAILED}
   */
  public static CudaStream adopt(CudaContext context, long handle) {
    context.makeCurrent();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
      context.check("cuStreamGetCtx", context.driver().streamGetContext(handle, out));
      long owner = out.get(ValueLayout.JAVA_LONG, 0);
      if (owner != context.handle()) {
        throw BifocalException.of(
            ErrorCode.DEVICE_MISMATCH,
            "context of an adopted stream",
            "0x" + Long.toHexString(owner),
            "0x" + Long.toHexString(context.handle()));
      }
      return new CudaStream(context, handle, false);
    }
  }

  public CudaContext context() {
    return context;
  }

  /** The {@code CUstream}. */
  public long handle() {
    return handle;
  }

  /** Whether it was not closed. */
  public boolean isOpen() {
    return !closed;
  }

  /**
   * Waits for everything in the queue.
   *
   * @throws BifocalException {@code DEVICE_LOST} when a kernel failed, {@code NATIVE_FAILED}
   */
  public void synchronize() {
    requireOpen("cuStreamSynchronize");
    context.makeCurrent();
    context.check("cuStreamSynchronize", context.driver().streamSynchronize(handle));
  }

  /** Whether everything in the queue is done. */
  public boolean idle() {
    requireOpen("cuStreamQuery");
    context.makeCurrent();
    int code = context.driver().streamQuery(handle);
    if (code == CudaError.NOT_READY) {
      return false;
    }
    context.check("cuStreamQuery", code);
    return true;
  }

  /** Whether launches are recorded instead of run. */
  public boolean capturing() {
    requireOpen("cuStreamIsCapturing");
    context.makeCurrent();
    try (Arena arena = Arena.ofConfined()) {
      return capturing(arena.allocate(ValueLayout.JAVA_INT));
    }
  }

  /**
   * The same, without allocating.
   *
   * @param room for the driver's answer, an {@code int} outside of the heap
   */
  public boolean capturing(MemorySegment room) {
    requireOpen("cuStreamIsCapturing");
    context.check("cuStreamIsCapturing", context.driver().streamIsCapturing(handle, room));
    return room.get(ValueLayout.JAVA_INT, 0) != 0;
  }

  /**
   * A queue beside this one that goes on from here, until it is closed. The first call makes it;
   * {@link #prepareFork} does so before.
   */
  public StreamFork fork() {
    return preparedFork().begin();
  }

  /** Makes the queue of {@link #fork}, since nothing can be made while a stream records. */
  public void prepareFork() {
    preparedFork();
  }

  private synchronized StreamFork preparedFork() {
    requireOpen("cuStreamCreate");
    StreamFork made = fork;
    if (made == null) {
      made = StreamFork.beside(this);
      fork = made;
    }
    return made;
  }

  /** Lets later work wait for an event. */
  public void waitFor(CudaEvent event) {
    requireOpen("cuStreamWaitEvent");
    event.requireOpen("cuStreamWaitEvent");
    context.check("cuStreamWaitEvent", context.driver().streamWaitEvent(handle, event.handle(), 0));
  }

  /**
   * Copies a host segment over the start of a device segment; see {@link #copyToDevice(
   * MemorySegment, long, MemorySegment, long, long)}.
   */
  public void copyToDevice(MemorySegment host, MemorySegment device) {
    copyToDevice(host, 0, device, 0, host.byteSize());
  }

  /**
   * Copies bytes to the device, when the stream gets there. Pinned host memory must not change
   * until then; other host memory has been read when this returns.
   *
   * @throws BifocalException {@code DEVICE_MISMATCH}, {@code MEMORY_TOO_SMALL}, {@code CLOSED},
   *     {@code NATIVE_FAILED}
   */
  public void copyToDevice(
      MemorySegment host, long hostOffset, MemorySegment device, long deviceOffset, long bytes) {
    requireOpen("cuMemcpyHtoDAsync");
    requireHost(host);
    requireRoom("host memory of a copy", host, hostOffset, bytes);
    requireRoom("device memory of a copy", device, deviceOffset, bytes);
    if (bytes > 0) {
      context.check(
          "cuMemcpyHtoDAsync",
          context
              .driver()
              .copyToDevice(
                  device.address() + deviceOffset, host.address() + hostOffset, bytes, handle));
    }
  }

  /** Copies the start of a device segment over a host segment. */
  public void copyToHost(MemorySegment device, MemorySegment host) {
    copyToHost(device, 0, host, 0, host.byteSize());
  }

  /**
   * Copies bytes to the host, when the stream gets there: synchronize before reading them.
   *
   * @throws BifocalException {@code DEVICE_MISMATCH}, {@code MEMORY_TOO_SMALL}, {@code CLOSED},
   *     {@code NATIVE_FAILED}
   */
  public void copyToHost(
      MemorySegment device, long deviceOffset, MemorySegment host, long hostOffset, long bytes) {
    requireOpen("cuMemcpyDtoHAsync");
    requireHost(host);
    requireRoom("host memory of a copy", host, hostOffset, bytes);
    requireRoom("device memory of a copy", device, deviceOffset, bytes);
    if (bytes > 0) {
      context.check(
          "cuMemcpyDtoHAsync",
          context
              .driver()
              .copyToHost(
                  host.address() + hostOffset, device.address() + deviceOffset, bytes, handle));
    }
  }

  /** Copies bytes from one device segment into another. */
  public void copyOnDevice(
      MemorySegment from, long fromOffset, MemorySegment to, long toOffset, long bytes) {
    requireOpen("cuMemcpyDtoDAsync");
    requireRoom("source of a copy", from, fromOffset, bytes);
    requireRoom("target of a copy", to, toOffset, bytes);
    if (bytes > 0) {
      context.check(
          "cuMemcpyDtoDAsync",
          context
              .driver()
              .copyOnDevice(to.address() + toOffset, from.address() + fromOffset, bytes, handle));
    }
  }

  /** Fills a device segment with a byte. */
  public void fill(MemorySegment device, byte value) {
    requireOpen("cuMemsetD8Async");
    requireRoom("device memory to fill", device, 0, device.byteSize());
    if (device.byteSize() > 0) {
      context.check(
          "cuMemsetD8Async",
          context.driver().fillBytes(device.address(), value, device.byteSize(), handle));
    }
  }

  /** Fills a device segment of whole, aligned words with a word. */
  public void fillWords(MemorySegment device, int value) {
    requireOpen("cuMemsetD32Async");
    requireRoom("device memory to fill", device, 0, device.byteSize());
    if ((device.byteSize() | device.address()) % Integer.BYTES != 0) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "device memory to fill with words",
          device.byteSize() + " bytes at 0x" + Long.toHexString(device.address()),
          "multiples of 4");
    }
    if (device.byteSize() > 0) {
      context.check(
          "cuMemsetD32Async",
          context
              .driver()
              .fillWords(device.address(), value, device.byteSize() / Integer.BYTES, handle));
    }
  }

  /**
   * Waits for the work of a stream that was made here and destroys it, and what was made beside a
   * stream; twice is harmless.
   */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    Closing closing = new Closing();
    StreamFork beside = fork;
    if (beside != null) {
      closing.then(beside::release);
    }
    closing.then(this::destroy).end();
  }

  private void destroy() {
    context.released(this);
    if (owned) {
      context.releaseWhenIdle("cuStreamDestroy", () -> context.driver().streamDestroy(handle));
    }
  }

  void requireOpen(String function) {
    context.requireUsable(function);
    if (closed) {
      throw BifocalException.of(ErrorCode.CLOSED, "the CUDA stream was closed");
    }
  }

  private static void requireHost(MemorySegment host) {
    if (!host.scope().isAlive()) {
      throw BifocalException.of(ErrorCode.CLOSED, "host memory of a copy: the memory was released");
    }
    if (!host.isNative() || !host.isAccessibleBy(Thread.currentThread())) {
      throw BifocalException.of(
              ErrorCode.DEVICE_MISMATCH,
              "host memory of a copy",
              host.isNative() ? "memory that this thread cannot read" : "memory of the Java heap",
              "native host memory")
          .withRemedy("allocate it from an Arena, or pinned");
    }
  }

  private static void requireRoom(String what, MemorySegment segment, long offset, long bytes) {
    if (!segment.scope().isAlive()) {
      throw BifocalException.of(ErrorCode.CLOSED, what + ": the memory was released");
    }
    if (offset < 0 || bytes < 0 || offset > segment.byteSize() - bytes) {
      throw BifocalException.of(
          ErrorCode.MEMORY_TOO_SMALL,
          what,
          segment.byteSize() + " bytes",
          bytes + " bytes from byte " + offset);
    }
  }

  @Override
  public String toString() {
    return "CUDA stream 0x" + Long.toHexString(handle);
  }
}
