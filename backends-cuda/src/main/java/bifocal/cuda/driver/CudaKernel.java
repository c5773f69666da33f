package bifocal.cuda.driver;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** One kernel of a library, and what the driver says of it. */
public final class CudaKernel {
  private final CudaLibrary library;
  private final String symbol;
  private final long handle;
  private final long function;
  private final Seq<Parameter> parameters;

  /**
   * One parameter, as the driver found it in the code.
   *
   * @param offset bytes from the start of the parameter block
   * @param bytes size
   */
  public record Parameter(long offset, long bytes) {}

  /**
   * What the driver tells about a kernel; the numbers are those of {@code CUfunction_attribute}.
   */
  public enum Attribute {
    MAX_THREADS_PER_BLOCK(0),
    STATIC_SHARED_BYTES(1),
    LOCAL_BYTES(3),
    REGISTERS(4),
    PTX_VERSION(5),
    BINARY_VERSION(6),
    MAX_DYNAMIC_SHARED_BYTES(8),
    PREFERRED_SHARED_CARVEOUT(9),
    NON_PORTABLE_CLUSTER_SIZE_ALLOWED(14);

    private final int number;

    Attribute(int number) {
      this.number = number;
    }
  }

  private CudaKernel(
      CudaLibrary library, String symbol, long handle, long function, Seq<Parameter> parameters) {
    this.library = library;
    this.symbol = symbol;
    this.handle = handle;
    this.function = function;
    this.parameters = parameters;
  }

  static CudaKernel of(CudaLibrary library, long libraryHandle, String symbol) {
    CudaContext context = library.context();
    CudaDriver driver = context.driver();
    context.makeCurrent();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
      context.check(
          "cuLibraryGetKernel of " + symbol + " in " + library.name(),
          driver.libraryGetKernel(out, libraryHandle, arena.allocateFrom(symbol)));
      long handle = out.get(ValueLayout.JAVA_LONG, 0);
      context.check("cuKernelGetFunction of " + symbol, driver.kernelGetFunction(out, handle));
      long function = out.get(ValueLayout.JAVA_LONG, 0);
      context.check("cuFuncLoad of " + symbol, driver.functionLoad(function));
      return new CudaKernel(
          library, symbol, handle, function, parameters(context, symbol, handle, arena));
    }
  }

  private static Seq<Parameter> parameters(
      CudaContext context, String symbol, long handle, Arena arena) {
    MemorySegment offset = arena.allocate(ValueLayout.JAVA_LONG);
    MemorySegment bytes = arena.allocate(ValueLayout.JAVA_LONG);
    Seq<Parameter> found = Vector.empty();
    while (true) {
      int code = context.driver().kernelGetParamInfo(handle, found.size(), offset, bytes);
      if (code == CudaError.INVALID_VALUE) {
        return found; // behind the last one
      }
      context.check("cuKernelGetParamInfo of " + symbol, code);
      found =
          found.append(
              new Parameter(
                  offset.get(ValueLayout.JAVA_LONG, 0), bytes.get(ValueLayout.JAVA_LONG, 0)));
    }
  }

  public CudaLibrary library() {
    return library;
  }

  public CudaContext context() {
    return library.context();
  }

  /** Name in the library. */
  public String symbol() {
    return symbol;
  }

  /** The parameters, in order. */
  public Seq<Parameter> parameters() {
    return parameters;
  }

  /** One attribute on the context's device. */
  public int attribute(Attribute attribute) {
    CudaContext context = usable("cuKernelGetAttribute");
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.JAVA_INT);
      context.check(
          "cuKernelGetAttribute(" + attribute + ") of " + symbol,
          context
              .driver()
              .kernelGetAttribute(out, attribute.number, handle, context.device().handle()));
      return out.get(ValueLayout.JAVA_INT, 0);
    }
  }

  /** Sets one attribute on the context's device. */
  public void setAttribute(Attribute attribute, int value) {
    CudaContext context = usable("cuKernelSetAttribute");
    context.check(
        "cuKernelSetAttribute(" + attribute + ", " + value + ") of " + symbol,
        context
            .driver()
            .kernelSetAttribute(attribute.number, value, handle, context.device().handle()));
  }

  /**
   * Blocks that fit on one multiprocessor at once.
   *
   * @param threads threads of a block
   * @param sharedBytes dynamic shared memory of a block
   */
  public int blocksPerMultiprocessor(int threads, int sharedBytes) {
    CudaContext context = usable("cuOccupancyMaxActiveBlocksPerMultiprocessor");
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.JAVA_INT);
      context.check(
          "cuOccupancyMaxActiveBlocksPerMultiprocessor of " + symbol,
          context.driver().occupancy(out, function, threads, sharedBytes));
      return out.get(ValueLayout.JAVA_INT, 0);
    }
  }

  /**
   * Lays out a launch once; later its values are set and it is launched, as often as wanted.
   *
   * @param arena owns the launch's memory
   */
  public PreparedLaunch prepare(Arena arena, LaunchShape shape) {
    usable("cuLaunchKernelEx");
    return new PreparedLaunch(this, handle, shape, arena);
  }

  private CudaContext usable(String called) {
    CudaContext context = library.context();
    context.requireUsable(called);
    if (library.closed()) {
      throw BifocalException.of(
          ErrorCode.CLOSED, "the kernels of " + library.name() + " were unloaded");
    }
    context.makeCurrent();
    return context;
  }

  @Override
  public String toString() {
    return "CUDA kernel " + symbol + " of " + library.name();
  }
}
