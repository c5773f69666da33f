package bifocal.tvm.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.tvm.ffi.LibraryLoader.Library;
import bifocal.tvm.ffi.LibraryLoader.Visibility;
import io.vavr.Tuple;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/**
 * The functions of {@code libtvm_ffi}. Either every function is there and the library is of a
 * version whose layouts this package knows, or nothing is bound.
 *
 * <p>Objects are numbers: their addresses. A method that can fail returns what the function
 * returned, 0 for success; what went wrong is then in {@link #raised}, on the same thread.
 */
@SuppressWarnings("restricted")
public final class RuntimeLibrary {
  /** What the file is called. */
  public static final String NAME = "libtvm_ffi.so";

  /** The version of the interface, and the first revision of it whose arrays are read here. */
  private static final int MAJOR = 0;

  private static final int MINOR = 1;
  private static final int OLDEST_REVISION = 9;

  /** The functions that are bound. */
  private static final Seq<String> NAMES =
      Vector.of(
          "TVMFFIObjectIncRef",
          "TVMFFIObjectDecRef",
          "TVMFFIFunctionCreate",
          "TVMFFIFunctionGetGlobal",
          "TVMFFIErrorMoveFromRaised",
          "TVMFFIErrorSetRaisedFromCStr",
          "TVMFFITensorFromDLPackVersioned",
          "TVMFFIStringFromByteArray",
          "TVMFFIEnvSetStream",
          "TVMFFIEnvGetStream");

  private static final Linker LINKER = Linker.nativeLinker();

  /** Calls of a function by its address, which is the first argument. */
  private static final MethodHandle SAFE_CALL =
      shape(FunctionDescriptor.of(JAVA_INT, JAVA_LONG, ADDRESS, JAVA_INT, ADDRESS));

  private static final MethodHandle OF_MEMORY = shape(FunctionDescriptor.ofVoid(ADDRESS));
  private static final MethodHandle OF_OBJECT = shape(FunctionDescriptor.of(JAVA_INT, JAVA_LONG));
  private static final MethodHandle OF_TWO_MEMORIES =
      shape(FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS));
  private static final MethodHandle OF_TWO_TEXTS =
      shape(FunctionDescriptor.ofVoid(ADDRESS, ADDRESS));
  private static final MethodHandle CREATE_FUNCTION =
      shape(FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, ADDRESS));
  private static final MethodHandle TENSOR_FROM_DLPACK =
      shape(FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_INT, JAVA_INT, ADDRESS));
  private static final MethodHandle SET_STREAM =
      shape(FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG, ADDRESS));
  private static final MethodHandle GET_STREAM =
      shape(FunctionDescriptor.of(JAVA_LONG, JAVA_INT, JAVA_INT));

  private final Path file;
  private final String version;
  private final MemorySegment retain;
  private final MemorySegment release;
  private final MemorySegment createFunction;
  private final MemorySegment globalFunction;
  private final MemorySegment moveRaised;
  private final MemorySegment setRaised;
  private final MemorySegment tensorFromDlpack;
  private final MemorySegment stringFromBytes;
  private final MemorySegment setStream;
  private final MemorySegment getStream;

  private RuntimeLibrary(Path file, String version, Map<String, MemorySegment> functions) {
    this.file = file;
    this.version = version;
    this.retain = functions.get("TVMFFIObjectIncRef").get();
    this.release = functions.get("TVMFFIObjectDecRef").get();
    this.createFunction = functions.get("TVMFFIFunctionCreate").get();
    this.globalFunction = functions.get("TVMFFIFunctionGetGlobal").get();
    this.moveRaised = functions.get("TVMFFIErrorMoveFromRaised").get();
    this.setRaised = functions.get("TVMFFIErrorSetRaisedFromCStr").get();
    this.tensorFromDlpack = functions.get("TVMFFITensorFromDLPackVersioned").get();
    this.stringFromBytes = functions.get("TVMFFIStringFromByteArray").get();
    this.setStream = functions.get("TVMFFIEnvSetStream").get();
    this.getStream = functions.get("TVMFFIEnvGetStream").get();
  }

  /** What a library said when a call failed. */
  public record Raised(String kind, String message, String backtrace) {}

  /**
   * Loads the library and shares it with every module opened later. A library that is refused is
   * shared with none.
   *
   * @throws BifocalException {@code NATIVE_MISSING} if the file is not there, does not load, is of
   *     another version, lacks a function, or if another copy of the library is in this process
   */
  public static RuntimeLibrary load(Path file) {
    LibraryLoader.requireFile(file);
    requireAlone(file);
    Library library = LibraryLoader.open(file, Visibility.OWN);
    String version = requireVersion(library);
    Map<String, MemorySegment> functions = functions(library);
    LibraryLoader.open(file, Visibility.SHARED);
    return new RuntimeLibrary(file, version, functions);
  }

  /** Never closed, so its address is good for ever. */
  private static Map<String, MemorySegment> functions(Library library) {
    Map<String, Option<Long>> found =
        LinkedHashMap.ofEntries(NAMES.map(name -> Tuple.of(name, library.symbol(name))));
    Seq<String> lacking = found.filterValues(Option::isEmpty).keySet().toVector();
    if (!lacking.isEmpty()) {
      throw BifocalException.of(
          ErrorCode.NATIVE_MISSING,
          library.file() + " found, but it lacks symbols",
          lacking.mkString(", "),
          "none missing");
    }
    return found.mapValues(address -> MemorySegment.ofAddress(address.get()));
  }

  /** {@code void TVMFFIGetVersion(TVMFFIVersion *)}: three {@code uint32_t}. */
  private static String requireVersion(Library library) {
    String wanted =
        MAJOR + "." + MINOR + "." + OLDEST_REVISION + " or a later " + MAJOR + "." + MINOR;
    Option<Long> function = library.symbol("TVMFFIGetVersion");
    if (function.isEmpty()) {
      throw BifocalException.of(
          ErrorCode.NATIVE_MISSING,
          library.file() + " is not TVM-FFI, or too old to tell its version",
          "no TVMFFIGetVersion",
          wanted);
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment version = arena.allocate(MemoryLayout.sequenceLayout(3, JAVA_INT));
      OF_MEMORY.invokeExact(MemorySegment.ofAddress(function.get()), version);
      int major = version.getAtIndex(JAVA_INT, 0);
      int minor = version.getAtIndex(JAVA_INT, 1);
      int revision = version.getAtIndex(JAVA_INT, 2);
      String seen = major + "." + minor + "." + revision;
      if (major != MAJOR || minor != MINOR || revision < OLDEST_REVISION) {
        throw BifocalException.of(
                ErrorCode.NATIVE_MISSING, library.file() + " is of another version", seen, wanted)
            .withRemedy("install a version of apache-tvm-ffi that fits");
      }
      return seen;
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected("TVMFFIGetVersion", thrown);
    }
  }

  /** A second copy ends the process while it is loaded: it registers its types with the first. */
  private static void requireAlone(Path file) {
    if (LibraryLoader.shared("TVMFFIGetVersion").isDefined() && !LibraryLoader.opened(file)) {
      throw BifocalException.of(
              ErrorCode.NATIVE_MISSING,
              file + " cannot be used",
              "another copy of " + NAME + " is in this process",
              "one copy in a process")
          .withRemedy("load the copy that is there already");
    }
  }

  /** The file it was loaded from. */
  public Path file() {
    return file;
  }

  /** Its version, for instance {@code 0.1.16}. */
  public String version() {
    return version;
  }

  /**
   * {@code int (*TVMFFISafeCallType)(void *, const TVMFFIAny *, int32_t, TVMFFIAny *)}.
   *
   * @param result whose type is none, or any that is not an object
   */
  public int call(
      MemorySegment function, long self, MemorySegment arguments, int count, MemorySegment result) {
    try {
      return (int) SAFE_CALL.invokeExact(function, self, arguments, count, result);
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected("a TVM-FFI function", thrown);
    }
  }

  /** {@code int TVMFFIObjectIncRef(TVMFFIObjectHandle)}. */
  public void retain(long object) {
    try {
      requireSuccess("TVMFFIObjectIncRef", (int) OF_OBJECT.invokeExact(retain, object));
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected("TVMFFIObjectIncRef", thrown);
    }
  }

  /** {@code int TVMFFIObjectDecRef(TVMFFIObjectHandle)}. */
  public void release(long object) {
    try {
      requireSuccess("TVMFFIObjectDecRef", (int) OF_OBJECT.invokeExact(release, object));
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected("TVMFFIObjectDecRef", thrown);
    }
  }

  /**
   * {@code int TVMFFIFunctionCreate(void *, TVMFFISafeCallType, void (*)(void *),
   * TVMFFIObjectHandle *)}.
   */
  public int createFunction(long self, long safeCall, long deleter, MemorySegment function) {
    try {
      return (int) CREATE_FUNCTION.invokeExact(createFunction, self, safeCall, deleter, function);
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected("TVMFFIFunctionCreate", thrown);
    }
  }

  /** {@code int TVMFFIFunctionGetGlobal(const TVMFFIByteArray *, TVMFFIObjectHandle *)}. */
  public int globalFunction(MemorySegment name, MemorySegment function) {
    try {
      return (int) OF_TWO_MEMORIES.invokeExact(globalFunction, name, function);
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected("TVMFFIFunctionGetGlobal", thrown);
    }
  }

  /**
   * {@code int TVMFFITensorFromDLPackVersioned(DLManagedTensorVersioned *, int32_t, int32_t,
   * TVMFFIObjectHandle *)}, with no wish as to alignment and order.
   */
  public int tensorFromDlpack(MemorySegment managed, MemorySegment tensor) {
    try {
      return (int)
          TENSOR_FROM_DLPACK.invokeExact(tensorFromDlpack, managed.address(), 0, 0, tensor);
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected("TVMFFITensorFromDLPackVersioned", thrown);
    }
  }

  /** {@code int TVMFFIStringFromByteArray(const TVMFFIByteArray *, TVMFFIAny *)}. */
  public int stringFromBytes(MemorySegment bytes, MemorySegment string) {
    try {
      return (int) OF_TWO_MEMORIES.invokeExact(stringFromBytes, bytes, string);
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected("TVMFFIStringFromByteArray", thrown);
    }
  }

  /**
   * {@code int TVMFFIEnvSetStream(int32_t, int32_t, TVMFFIStreamHandle, TVMFFIStreamHandle *)}, for
   * the current thread.
   */
  public int setStream(int deviceType, int deviceId, long stream, MemorySegment previous) {
    try {
      return (int) SET_STREAM.invokeExact(setStream, deviceType, deviceId, stream, previous);
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected("TVMFFIEnvSetStream", thrown);
    }
  }

  /** {@code TVMFFIStreamHandle TVMFFIEnvGetStream(int32_t, int32_t)}, of the current thread. */
  public long stream(int deviceType, int deviceId) {
    try {
      return (long) GET_STREAM.invokeExact(getStream, deviceType, deviceId);
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected("TVMFFIEnvGetStream", thrown);
    }
  }

  /** {@code void TVMFFIErrorSetRaisedFromCStr(const char *, const char *)}, for this thread. */
  public void raise(String kind, String message) {
    try (Arena arena = Arena.ofConfined()) {
      OF_TWO_TEXTS.invokeExact(
          setRaised, arena.allocateFrom(kind), arena.allocateFrom(message.replace('\0', ' ')));
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected("TVMFFIErrorSetRaisedFromCStr", thrown);
    }
  }

  /**
   * {@code void TVMFFIErrorMoveFromRaised(TVMFFIObjectHandle *)}: why the last call of this thread
   * failed. It is told once.
   */
  public Raised raised() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment error = arena.allocate(JAVA_LONG);
      OF_MEMORY.invokeExact(moveRaised, error);
      long object = error.get(JAVA_LONG, 0);
      if (object == 0) {
        return new Raised("Error", "the library gave no reason", "");
      }
      try {
        return ObjectCells.error(object);
      } finally {
        release(object);
      }
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected("TVMFFIErrorMoveFromRaised", thrown);
    }
  }

  private static void requireSuccess(String function, int code) {
    if (code != 0) {
      throw BifocalException.of(ErrorCode.NATIVE_FAILED, function, code, 0);
    }
  }

  private static MethodHandle shape(FunctionDescriptor type) {
    return LINKER.downcallHandle(type);
  }
}
