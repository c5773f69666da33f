package bifocal.cuda.driver;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Compiled kernels, loaded into a context. */
public final class CudaLibrary implements AutoCloseable {
  private final CudaContext context;
  private final String name;
  private final long handle;
  private boolean closed;

  private CudaLibrary(CudaContext context, String name, long handle) {
    this.context = context;
    this.name = name;
    this.handle = handle;
  }

  /**
   * Loads a cubin, a fat binary or PTX; the driver keeps a copy of its own.
   *
   * @param name how messages call it
   * @throws BifocalException {@code NATIVE_FAILED} with the driver's text, for instance when it is
   *     for another architecture; {@code DEVICE_LOST}
   */
  public static CudaLibrary load(CudaContext context, String name, byte[] image) {
    context.makeCurrent();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
      // PTX is read up to a zero byte.
      MemorySegment code = arena.allocate(image.length + 1L, Long.BYTES);
      MemorySegment.copy(image, 0, code, ValueLayout.JAVA_BYTE, 0, image.length);
      context.check(
          "cuLibraryLoadData of " + name,
          context.driver().libraryLoadData(out, code, 0, 0, 0, 0, 0, 0));
      CudaLibrary library = new CudaLibrary(context, name, out.get(ValueLayout.JAVA_LONG, 0));
      context.opened(library, "library " + name);
      return library;
    }
  }

  public CudaContext context() {
    return context;
  }

  /** How messages call it. */
  public String name() {
    return name;
  }

  /**
   * Looks a kernel up and loads its code onto the device, so that a launch inside a capture need
   * not.
   *
   * @throws BifocalException {@code NATIVE_FAILED} when there is none of that symbol
   */
  public CudaKernel kernel(String symbol) {
    context.requireUsable("cuLibraryGetKernel");
    if (closed) {
      throw BifocalException.of(ErrorCode.CLOSED, "the kernels of " + name + " were unloaded");
    }
    return CudaKernel.of(this, handle, symbol);
  }

  /** Waits for launches under way and unloads the kernels; closing twice is harmless. */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    context.released(this);
    context.releaseWhenIdle(
        "cuLibraryUnload of " + name, () -> context.driver().libraryUnload(handle));
  }

  boolean closed() {
    return closed;
  }

  @Override
  public String toString() {
    return "CUDA library " + name;
  }
}
