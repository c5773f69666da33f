package bifocal.benchmarks.cpu.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * ONNX Runtime through its C API, a table of functions whose places never change. Once loaded it
 * stays.
 */
@SuppressWarnings("restricted")
public final class OnnxRuntime {
  private static final String LIBRARY = "onnxruntime";
  private static final Linker LINKER = Linker.nativeLinker();
  private static final int API_VERSION = 17;
  private static final int LONGEST_TEXT = 4096;
  private static final int WARNING = 2;
  private static final int ARENA_ALLOCATOR = 1;
  private static final int DEFAULT_MEMORY = 0;

  /** Element types of the C API. */
  public enum Element {
    /** {@code float}. */
    FLOAT(1),
    /** {@code int32_t}. */
    INT32(6);

    private final int number;

    Element(int number) {
      this.number = number;
    }

    /** Its number, also in models. */
    public int number() {
      return number;
    }
  }

  private final String version;
  private final MethodHandle errorMessage;
  private final MethodHandle createEnvironment;
  private final MethodHandle createSession;
  private final MethodHandle run;
  private final MethodHandle createOptions;
  private final MethodHandle setThreads;
  private final MethodHandle createTensor;
  private final MethodHandle createMemory;
  private final MethodHandle releaseSession;
  private final MethodHandle releaseValue;
  private final long environment;
  private final long memory;

  private OnnxRuntime(SymbolLookup library) {
    MethodHandle base =
        LINKER.downcallHandle(library.findOrThrow("OrtGetApiBase"), FunctionDescriptor.of(ADDRESS));
    try {
      MemorySegment head = ((MemorySegment) base.invokeExact()).reinterpret(2 * ADDRESS.byteSize());
      MethodHandle getApi =
          LINKER.downcallHandle(
              head.getAtIndex(ADDRESS, 0), FunctionDescriptor.of(ADDRESS, JAVA_INT));
      MethodHandle getVersion =
          LINKER.downcallHandle(head.getAtIndex(ADDRESS, 1), FunctionDescriptor.of(ADDRESS));
      this.version = text((MemorySegment) getVersion.invokeExact());
      MemorySegment api =
          ((MemorySegment) getApi.invokeExact(API_VERSION)).reinterpret(128 * ADDRESS.byteSize());
      this.errorMessage = function(api, 2, FunctionDescriptor.of(ADDRESS, ADDRESS));
      this.createEnvironment =
          function(api, 3, FunctionDescriptor.of(ADDRESS, JAVA_INT, ADDRESS, ADDRESS));
      this.createSession =
          function(
              api,
              8,
              FunctionDescriptor.of(ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_LONG, ADDRESS));
      this.run =
          function(
              api,
              9,
              FunctionDescriptor.of(
                  ADDRESS, JAVA_LONG, JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG,
                  ADDRESS));
      this.createOptions = function(api, 10, FunctionDescriptor.of(ADDRESS, ADDRESS));
      this.setThreads = function(api, 24, FunctionDescriptor.of(ADDRESS, JAVA_LONG, JAVA_INT));
      this.createTensor =
          function(
              api,
              49,
              FunctionDescriptor.of(
                  ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_INT, ADDRESS));
      this.createMemory =
          function(api, 69, FunctionDescriptor.of(ADDRESS, JAVA_INT, JAVA_INT, ADDRESS));
      this.releaseSession = function(api, 95, FunctionDescriptor.ofVoid(JAVA_LONG));
      this.releaseValue = function(api, 96, FunctionDescriptor.ofVoid(JAVA_LONG));
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment result = arena.allocate(JAVA_LONG);
        requireSuccess(
            (MemorySegment)
                createEnvironment.invokeExact(WARNING, arena.allocateFrom("bifocal"), result));
        this.environment = result.get(JAVA_LONG, 0);
        requireSuccess(
            (MemorySegment) createMemory.invokeExact(ARENA_ALLOCATOR, DEFAULT_MEMORY, result));
        this.memory = result.get(JAVA_LONG, 0);
      }
    } catch (Throwable thrown) {
      throw Calls.unexpected(LIBRARY, thrown);
    }
  }

  /** The library in a folder of peers, absent where it is not there. */
  public static Option<OnnxRuntime> in(Path peers) {
    Path file = peers.resolve("ai/onnxruntime/native/linux-x64/libonnxruntime.so");
    if (!Files.isRegularFile(file)) {
      return Option.none();
    }
    try {
      return Option.some(
          new OnnxRuntime(SymbolLookup.libraryLookup(file.toAbsolutePath(), Arena.global())));
    } catch (IllegalArgumentException e) {
      throw BifocalException.of(
              ErrorCode.NATIVE_MISSING, file.toString(), "cannot be loaded", "a library that loads")
          .causedBy(e);
    }
  }

  /** Its version. */
  public String version() {
    return version;
  }

  /**
   * {@code CreateSessionFromArray} with this many threads inside an operator.
   *
   * @return handle of the session, for {@link #releaseSession}
   */
  public long session(byte[] model, int threads) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment result = arena.allocate(JAVA_LONG);
      requireSuccess((MemorySegment) createOptions.invokeExact(result));
      long options = result.get(JAVA_LONG, 0);
      requireSuccess((MemorySegment) setThreads.invokeExact(options, threads));
      MemorySegment bytes = arena.allocate(model.length);
      MemorySegment.copy(MemorySegment.ofArray(model), 0, bytes, 0, model.length);
      requireSuccess(
          (MemorySegment)
              createSession.invokeExact(environment, bytes, (long) model.length, options, result));
      return result.get(JAVA_LONG, 0);
    } catch (Throwable thrown) {
      throw Calls.unexpected(LIBRARY, thrown);
    }
  }

  /** {@code ReleaseSession}. */
  public void releaseSession(long session) {
    try {
      releaseSession.invokeExact(session);
    } catch (Throwable thrown) {
      throw Calls.unexpected(LIBRARY, thrown);
    }
  }

  /**
   * {@code CreateTensorWithDataAsOrtValue}: a tensor over memory of the caller's.
   *
   * @return its handle, for {@link #releaseTensor}
   */
  public long tensor(MemorySegment data, Element element, long... shape) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment result = arena.allocate(JAVA_LONG);
      MemorySegment sizes =
          shape.length == 0 ? MemorySegment.NULL : arena.allocateFrom(JAVA_LONG, shape);
      requireSuccess(
          (MemorySegment)
              createTensor.invokeExact(
                  memory,
                  data.address(),
                  data.byteSize(),
                  sizes,
                  (long) shape.length,
                  element.number,
                  result));
      return result.get(JAVA_LONG, 0);
    } catch (Throwable thrown) {
      throw Calls.unexpected(LIBRARY, thrown);
    }
  }

  /** {@code ReleaseValue}. */
  public void releaseTensor(long tensor) {
    try {
      releaseValue.invokeExact(tensor);
    } catch (Throwable thrown) {
      throw Calls.unexpected(LIBRARY, thrown);
    }
  }

  /**
   * {@code Run}.
   *
   * @param inputNames array of C strings, {@code inputs} array of as many handles
   * @param outputNames array of C strings, {@code outputs} array of as many handles, written into
   */
  public void run(
      long session,
      MemorySegment inputNames,
      MemorySegment inputs,
      MemorySegment outputNames,
      MemorySegment outputs) {
    try {
      requireSuccess(
          (MemorySegment)
              run.invokeExact(
                  session,
                  0L,
                  inputNames,
                  inputs,
                  inputs.byteSize() / JAVA_LONG.byteSize(),
                  outputNames,
                  outputs.byteSize() / JAVA_LONG.byteSize(),
                  outputs));
    } catch (Throwable thrown) {
      throw Calls.unexpected(LIBRARY, thrown);
    }
  }

  private void requireSuccess(MemorySegment status) throws Throwable {
    if (status.address() != 0) {
      throw Calls.failed(LIBRARY, text((MemorySegment) errorMessage.invokeExact(status)));
    }
  }

  private static String text(MemorySegment pointer) {
    return pointer.reinterpret(LONGEST_TEXT).getString(0);
  }

  private static MethodHandle function(MemorySegment api, int place, FunctionDescriptor type) {
    return LINKER.downcallHandle(api.getAtIndex(ADDRESS, place), type);
  }
}
