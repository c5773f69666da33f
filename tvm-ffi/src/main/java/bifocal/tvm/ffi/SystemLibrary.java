package bifocal.tvm.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * The functions of the C library that open libraries, watch over signals and own small blocks.
 * Handles and addresses are numbers.
 */
@SuppressWarnings("restricted")
final class SystemLibrary {
  static final int RTLD_LAZY = 0x1;
  static final int RTLD_NOW = 0x2;
  static final int RTLD_LOCAL = 0;
  static final int RTLD_GLOBAL = 0x100;
  static final int RTLD_NOLOAD = 0x4;

  /** The handle under which {@code dlsym} looks through all that the process shares. */
  static final long RTLD_DEFAULT = 0;

  /** Distance between two {@code struct sigaction} of {@link #signalActions}. */
  static final long ACTION_BYTES = 256;

  private static final int LONGEST_TEXT = 4096;
  private static final Linker LINKER = Linker.nativeLinker();
  private static final MethodHandle DLOPEN =
      function("dlopen", FunctionDescriptor.of(JAVA_LONG, ADDRESS, JAVA_INT));
  private static final MethodHandle DLSYM =
      function("dlsym", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, ADDRESS));
  private static final MethodHandle DLERROR = function("dlerror", FunctionDescriptor.of(ADDRESS));
  private static final MethodHandle SIGACTION =
      function("sigaction", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, ADDRESS));
  private static final MethodHandle PRCTL =
      function(
          "prctl",
          FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG),
          Linker.Option.firstVariadicArg(1));
  private static final MethodHandle MALLOC =
      function("malloc", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG));
  private static final MethodHandle FREE = function("free", FunctionDescriptor.ofVoid(JAVA_LONG));

  private SystemLibrary() {}

  /**
   * {@code void *dlopen(const char *, int)}.
   *
   * @return 0 after a failure, of which {@link #loaderText} tells on the same thread
   */
  static long open(MemorySegment path, int flags) {
    try {
      return (long) DLOPEN.invokeExact(path, flags);
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected("dlopen", thrown);
    }
  }

  /**
   * {@code void *dlsym(void *, const char *)}.
   *
   * @return 0 where there is no such symbol
   */
  static long symbol(long handle, String name) {
    try (Arena arena = Arena.ofConfined()) {
      return (long) DLSYM.invokeExact(handle, arena.allocateFrom(name));
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected("dlsym", thrown);
    }
  }

  /** {@code char *dlerror(void)}: what the loader last had to say to this thread. */
  static Option<String> loaderText() {
    try {
      MemorySegment text = (MemorySegment) DLERROR.invokeExact();
      return text.address() == 0
          ? Option.none()
          : Option.some(text.reinterpret(LONGEST_TEXT).getString(0));
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected("dlerror", thrown);
    }
  }

  /** {@code int sigaction(int, const struct sigaction *, struct sigaction *)}. */
  static int signalAction(int signal, MemorySegment action, MemorySegment previous) {
    try {
      return (int) SIGACTION.invokeExact(signal, action, previous);
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected("sigaction", thrown);
    }
  }

  /** {@code int prctl(int, ...)}. */
  static int threadControl(int option, long first, long second) {
    try {
      return (int) PRCTL.invokeExact(option, first, second, 0L, 0L);
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected("prctl", thrown);
    }
  }

  /**
   * {@code void *malloc(size_t)}, of a known size. Whoever gets the block frees it with {@link
   * #free}, or hands {@link #freeAddress} to the native code that takes it over.
   */
  static MemorySegment allocate(long bytes) {
    try {
      long address = (long) MALLOC.invokeExact(bytes);
      if (address == 0) {
        throw new OutOfMemoryError("malloc of " + bytes + " bytes");
      }
      return MemorySegment.ofAddress(address).reinterpret(bytes).fill((byte) 0);
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected("malloc", thrown);
    }
  }

  /** {@code void free(void *)}. */
  static void free(MemorySegment block) {
    try {
      FREE.invokeExact(block.address());
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected("free", thrown);
    }
  }

  /** Where {@code free} is. */
  static long freeAddress() {
    return LINKER.defaultLookup().findOrThrow("free").address();
  }

  private static MethodHandle function(
      String name, FunctionDescriptor type, Linker.Option... options) {
    return LINKER.downcallHandle(LINKER.defaultLookup().findOrThrow(name), type, options);
  }

  /** Memory for {@code struct sigaction}, with room to spare. */
  static MemorySegment signalActions(Arena arena, int count) {
    return arena.allocate(MemoryLayout.sequenceLayout(count * ACTION_BYTES / 8, JAVA_LONG));
  }
}
