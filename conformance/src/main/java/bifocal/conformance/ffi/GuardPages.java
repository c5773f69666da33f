package bifocal.conformance.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.Locale;

/**
 * Memory mapped page by page on Linux: blocks that end where access ends, and address space that is
 * reserved without being used. The arena given owns each mapping and undoes it.
 */
public final class GuardPages {
  /** Page size that is a multiple of every page size in use on x86-64 and AArch64 Linux. */
  private static final long PAGE = 65_536;

  private static final int PROT_NONE = 0;
  private static final int PROT_READ_WRITE = 3;
  private static final int MAP_PRIVATE_ANONYMOUS_NORESERVE = 0x2 | 0x20 | 0x4000;

  /** {@code MAP_FAILED}. */
  private static final long FAILED = -1;

  private static final Option<Functions> FUNCTIONS = link();

  private record Functions(MethodHandle map, MethodHandle protect, MethodHandle unmap) {}

  private GuardPages() {}

  /** Whether memory can be mapped here: Linux, with native access enabled. */
  public static boolean available() {
    return FUNCTIONS.isDefined();
  }

  /**
   * A zero-filled block whose last byte lies right before a page without access. Its start is
   * aligned as far as its size is.
   */
  public static MemorySegment allocate(long bytes, Arena owner) {
    long room = Math.max(1, Math.ceilDiv(bytes, PAGE)) * PAGE;
    MemorySegment pages = reserve(room + PAGE, owner);
    protect(pages.asSlice(room, PAGE));
    return pages.asSlice(room - bytes, bytes);
  }

  /**
   * Address space that takes memory only where it is touched, zero-filled.
   *
   * @throws BifocalException {@code NATIVE_FAILED} when the system refuses
   */
  public static MemorySegment reserve(long bytes, Arena owner) {
    MemorySegment start = map(bytes);
    return reinterpreted(start, bytes, owner);
  }

  @SuppressWarnings("restricted")
  private static MemorySegment reinterpreted(MemorySegment start, long bytes, Arena owner) {
    return start.reinterpret(bytes, owner, segment -> unmap(segment, bytes));
  }

  /** {@code void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)}. */
  private static MemorySegment map(long bytes) {
    MemorySegment start;
    try {
      start =
          (MemorySegment)
              functions()
                  .map()
                  .invokeExact(
                      MemorySegment.NULL,
                      bytes,
                      PROT_READ_WRITE,
                      MAP_PRIVATE_ANONYMOUS_NORESERVE,
                      -1,
                      0L);
    } catch (Throwable t) {
      throw unexpected("mmap", t);
    }
    if (start.address() == FAILED) {
      throw BifocalException.of(
          ErrorCode.NATIVE_FAILED, "mmap", "refused " + bytes + " bytes", "address space");
    }
    return start;
  }

  /** {@code int mprotect(void *addr, size_t len, int prot)}. */
  private static void protect(MemorySegment pages) {
    int result;
    try {
      result = (int) functions().protect().invokeExact(pages, pages.byteSize(), PROT_NONE);
    } catch (Throwable t) {
      throw unexpected("mprotect", t);
    }
    requireZero("mprotect", result);
  }

  /** {@code int munmap(void *addr, size_t length)}. */
  private static void unmap(MemorySegment start, long bytes) {
    int result;
    try {
      result = (int) functions().unmap().invokeExact(start, bytes);
    } catch (Throwable t) {
      throw unexpected("munmap", t);
    }
    requireZero("munmap", result);
  }

  private static void requireZero(String function, int result) {
    if (result != 0) {
      throw BifocalException.of(ErrorCode.NATIVE_FAILED, function, result, 0);
    }
  }

  private static BifocalException unexpected(String function, Throwable cause) {
    return BifocalException.of(ErrorCode.INTERNAL, function + " could not be called")
        .causedBy(cause);
  }

  private static Functions functions() {
    return FUNCTIONS.getOrElseThrow(
        () ->
            BifocalException.of(ErrorCode.NATIVE_MISSING, "mapped memory", "not available", "Linux")
                .withRemedy("run with --enable-native-access=ALL-UNNAMED"));
  }

  @SuppressWarnings("restricted")
  private static Option<Functions> link() {
    boolean linux = System.getProperty("os.name", "").toLowerCase(Locale.ROOT).equals("linux");
    if (!linux || !GuardPages.class.getModule().isNativeAccessEnabled()) {
      return Option.none();
    }
    Linker linker = Linker.nativeLinker();
    SymbolLookup symbols = linker.defaultLookup();
    return link(
            linker, symbols, "mmap", ADDRESS, ADDRESS, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT,
            JAVA_LONG)
        .flatMap(
            map ->
                link(linker, symbols, "mprotect", JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT)
                    .flatMap(
                        protect ->
                            link(linker, symbols, "munmap", JAVA_INT, ADDRESS, JAVA_LONG)
                                .map(unmap -> new Functions(map, protect, unmap))));
  }

  @SuppressWarnings("restricted")
  private static Option<MethodHandle> link(
      Linker linker,
      SymbolLookup symbols,
      String name,
      MemoryLayout result,
      MemoryLayout... arguments) {
    return Option.ofOptional(symbols.find(name))
        .map(symbol -> linker.downcallHandle(symbol, FunctionDescriptor.of(result, arguments)));
  }
}
