package bifocal.cpu.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cpu.kernel.AttendParams;
import bifocal.cpu.kernel.CpuKernels;
import bifocal.cpu.kernel.KvWriteParams;
import bifocal.cpu.kernel.MergeItem;
import bifocal.cpu.kernel.WorkItem;
import io.vavr.control.Option;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/**
 * The kernels of {@code libbifocal_cpu}. Either every function is there and the library agrees with
 * this class about its interface, or nothing is bound. A library stays loaded as long as the JVM.
 *
 * <p>Addresses of items and scratch are passed as numbers; parameter blocks are passed as segments,
 * so that they cannot be released while a call runs.
 */
@SuppressWarnings("restricted")
public final class NativeKernels implements CpuKernels {
  /** System property that names a library to use instead of the packaged one. */
  public static final String PROPERTY = "bifocal.cpu.library";

  /** {@code BIFOCAL_CPU_ABI_VERSION} that this class was written for. */
  static final int ABI_VERSION = 1;

  private static final String LIBRARY = "libbifocal_cpu.so";
  private static final int LONGEST_TEXT = 1024;
  private static final Linker LINKER = Linker.nativeLinker();

  private final Functions functions;
  private final String isa;
  private final String origin;

  private NativeKernels(Functions functions, String isa, String origin) {
    this.functions = functions;
    this.isa = isa;
    this.origin = origin;
  }

  /** Where the library came from, for reports. */
  public String origin() {
    return origin;
  }

  /** The library's functions. */
  private record Functions(
      MethodHandle queryTile,
      MethodHandle scratchBytes,
      MethodHandle attend,
      MethodHandle merge,
      MethodHandle writeKv,
      MethodHandle errorText) {}

  /**
   * The library that {@link #PROPERTY} names, else the one packaged with this class.
   *
   * @throws BifocalException {@code NATIVE_MISSING} that says what was looked for where, and
   *     whether it was not found, did not load, is another version, or cannot run on this CPU
   */
  public static NativeKernels load() {
    Option<String> named = Option.of(System.getProperty(PROPERTY));
    return named.isDefined() ? load(Path.of(named.get())) : loadPackaged();
  }

  /**
   * Loads a library file.
   *
   * @throws BifocalException as {@link #load()}
   */
  public static NativeKernels load(Path file) {
    if (!Files.isRegularFile(file)) {
      throw missing("not found", file.toString())
          .withRemedy("build it with kernels/cpu/build.sh, or unset -D" + PROPERTY);
    }
    return bind(open(file), file.toString());
  }

  private static NativeKernels loadPackaged() {
    String name =
        "native/"
            + System.getProperty("os.name")
            + "-"
            + System.getProperty("os.arch")
            + "/"
            + LIBRARY;
    try (InputStream packaged = NativeKernels.class.getResourceAsStream(name)) {
      if (packaged == null) {
        throw missing("not packaged for this system", name)
            .withRemedy("build with make and a C compiler installed");
      }
      Path copy = Files.createTempFile("libbifocal_cpu", ".so");
      try {
        Files.copy(packaged, copy, StandardCopyOption.REPLACE_EXISTING);
        return bind(open(copy), "the packaged " + LIBRARY);
      } finally {
        Files.deleteIfExists(copy);
      }
    } catch (IOException e) {
      throw missing("cannot be unpacked", String.valueOf(e.getMessage())).causedBy(e);
    }
  }

  private static SymbolLookup open(Path file) {
    try {
      return SymbolLookup.libraryLookup(file.toAbsolutePath(), Arena.global());
    } catch (IllegalArgumentException e) {
      throw missing("found but cannot be loaded", loaderText(file, e)).causedBy(e);
    }
  }

  /** What the system's loader says, which the first attempt does not tell. */
  private static String loaderText(Path file, IllegalArgumentException first) {
    try {
      System.load(file.toAbsolutePath().toString());
      return String.valueOf(first.getMessage());
    } catch (UnsatisfiedLinkError e) {
      return String.valueOf(e.getMessage());
    }
  }

  private static NativeKernels bind(SymbolLookup library, String where) {
    requireEqual(
        where, "version of the interface", number(library, "bifocal_cpu_abi_version"), ABI_VERSION);
    requireEqual(
        where, "parameters", size(library, "bifocal_cpu_sizeof_params"), AttendParams.BYTES);
    requireEqual(where, "items", size(library, "bifocal_cpu_sizeof_item"), WorkItem.BYTES);
    requireEqual(
        where, "merge items", size(library, "bifocal_cpu_sizeof_merge_item"), MergeItem.BYTES);
    requireEqual(
        where,
        "write parameters",
        size(library, "bifocal_cpu_sizeof_kv_write"),
        KvWriteParams.BYTES);
    Functions functions =
        new Functions(
            function(library, "bifocal_cpu_query_tile", FunctionDescriptor.of(JAVA_INT, ADDRESS)),
            function(
                library,
                "bifocal_cpu_scratch_bytes",
                FunctionDescriptor.of(JAVA_LONG, ADDRESS, JAVA_INT)),
            function(
                library,
                "bifocal_cpu_attend",
                FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG)),
            function(
                library,
                "bifocal_cpu_merge",
                FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_LONG)),
            function(
                library,
                "bifocal_cpu_write_kv",
                FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_LONG)),
            function(library, "bifocal_cpu_error_text", FunctionDescriptor.of(ADDRESS, JAVA_INT)));
    String isa = isa(library);
    if (isa.equals("none")) {
      throw missing(
              "found, but the instruction set that BIFOCAL_CPU_ISA names cannot run here", where)
          .withRemedy("unset BIFOCAL_CPU_ISA");
    }
    return new NativeKernels(functions, isa, where);
  }

  /** {@code const char *bifocal_cpu_isa(void)}. */
  private static String isa(SymbolLookup library) {
    MethodHandle isa = function(library, "bifocal_cpu_isa", FunctionDescriptor.of(ADDRESS));
    try {
      return text((MemorySegment) isa.invokeExact());
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
  }

  @Override
  public String name() {
    return "native-" + isa;
  }

  /** {@code int32_t bifocal_cpu_query_tile(const bifocal_cpu_params *)}. */
  @Override
  public int queryTile(AttendParams params) {
    try {
      return (int) requireSuccess((int) functions.queryTile.invokeExact(params.block()));
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
  }

  /** {@code int64_t bifocal_cpu_scratch_bytes(const bifocal_cpu_params *, int32_t)}. */
  @Override
  public long scratchBytes(AttendParams params, int queryCount) {
    try {
      return requireSuccess((long) functions.scratchBytes.invokeExact(params.block(), queryCount));
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
  }

  /**
   * {@code int32_t bifocal_cpu_attend(const bifocal_cpu_params *, const bifocal_cpu_item *,
   * int64_t, void *)}.
   */
  @Override
  public void attend(AttendParams params, long items, long count, long scratch) {
    try {
      requireSuccess((int) functions.attend.invokeExact(params.block(), items, count, scratch));
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
  }

  /**
   * {@code int32_t bifocal_cpu_merge(const bifocal_cpu_params *, const bifocal_cpu_merge_item *,
   * int64_t)}.
   */
  @Override
  public void merge(AttendParams params, long items, long count) {
    try {
      requireSuccess((int) functions.merge.invokeExact(params.block(), items, count));
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
  }

  /** {@code int32_t bifocal_cpu_write_kv(const bifocal_cpu_kv_write *, int64_t, int64_t)}. */
  @Override
  public void writeKv(KvWriteParams params, long first, long count) {
    try {
      requireSuccess((int) functions.writeKv.invokeExact(params.block(), first, count));
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
  }

  @Override
  public String toString() {
    return name();
  }

  private long requireSuccess(long result) {
    if (result >= 0) {
      return result;
    }
    String text;
    try {
      text = text((MemorySegment) functions.errorText.invokeExact((int) result));
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
    throw BifocalException.of(ErrorCode.NATIVE_FAILED, LIBRARY, result + " (" + text + ")", "0");
  }

  private static String text(MemorySegment pointer) {
    return pointer.reinterpret(LONGEST_TEXT).getString(0);
  }

  private static long number(SymbolLookup library, String name) {
    MethodHandle function = function(library, name, FunctionDescriptor.of(JAVA_INT));
    try {
      return (int) function.invokeExact();
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
  }

  private static long size(SymbolLookup library, String name) {
    MethodHandle function = function(library, name, FunctionDescriptor.of(JAVA_LONG));
    try {
      return (long) function.invokeExact();
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
  }

  private static MethodHandle function(SymbolLookup library, String name, FunctionDescriptor type) {
    MemorySegment symbol =
        library
            .find(name)
            .orElseThrow(() -> missing("found, but too old: it lacks a symbol", name));
    return LINKER.downcallHandle(symbol, type);
  }

  private static void requireEqual(String where, String what, long seen, long wanted) {
    if (seen != wanted) {
      throw BifocalException.of(
              ErrorCode.NATIVE_MISSING, where + " is of another version: " + what, seen, wanted)
          .withRemedy("build it again with kernels/cpu/build.sh");
    }
  }

  private static BifocalException missing(String what, String seen) {
    return BifocalException.of(
        ErrorCode.NATIVE_MISSING, LIBRARY + " " + what, seen, "the library of this version");
  }

  private static RuntimeException unexpected(Throwable thrown) {
    return switch (thrown) {
      case RuntimeException known -> known;
      case Error error -> throw error;
      default ->
          BifocalException.of(ErrorCode.INTERNAL, "a call of " + LIBRARY + " failed")
              .causedBy(thrown);
    };
  }
}
