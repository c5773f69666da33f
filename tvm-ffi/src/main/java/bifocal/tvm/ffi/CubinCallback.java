package bifocal.tvm.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.tvm.ffi.LibraryLoader.Library;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/**
 * How a module of FlashInfer asks for the machine code of a kernel while it runs: it calls a C
 * function with a name and a hash, which hands the code over by another C function before it
 * returns. Neither can tell of a failure, so code that is missing is handed over empty.
 */
@SuppressWarnings("restricted")
public final class CubinCallback {
  /** {@code void FlashInferSetCubinCallback(void (*)(const char *name, const char *sha256))}. */
  public static final String REGISTER = "FlashInferSetCubinCallback";

  /** {@code void FlashInferSetCurrentCubin(const char *code, int bytes)}. */
  public static final String HAND_OVER = "FlashInferSetCurrentCubin";

  private static final Linker LINKER = Linker.nativeLinker();
  private static final long LONGEST_TEXT = 1 << 16;
  private static final FunctionDescriptor ASKED = FunctionDescriptor.ofVoid(ADDRESS, ADDRESS);

  private static final MethodHandle REGISTERING =
      LINKER.downcallHandle(FunctionDescriptor.ofVoid(ADDRESS));
  private static final MethodHandle HANDING_OVER =
      LINKER.downcallHandle(FunctionDescriptor.ofVoid(ADDRESS, JAVA_INT));

  private final MemorySegment handOver;
  private final Answer answer;

  private CubinCallback(MemorySegment handOver, Answer answer) {
    this.handOver = handOver;
    this.answer = answer;
  }

  /** Who answers. Nothing may be thrown: it would be thrown into native code. */
  public interface Answer {
    /** The code of a kernel; empty when there is none. */
    byte[] code(String name, String sha256);

    /** Learns what went wrong on the way to or from {@link #code}. */
    void failed(Throwable thrown);
  }

  /** Whether a library asks in this way. */
  public static boolean askedBy(Library library) {
    return library.symbol(REGISTER).isDefined() && library.symbol(HAND_OVER).isDefined();
  }

  /**
   * Lets a library ask from now on, as long as the JVM runs.
   *
   * @throws BifocalException {@code NATIVE_MISSING} if it does not ask in this way
   */
  public static void register(Library library, Answer answer) {
    MemorySegment register = function(library, REGISTER);
    CubinCallback callback = new CubinCallback(function(library, HAND_OVER), answer);
    try {
      REGISTERING.invokeExact(register, callback.stub());
    } catch (Throwable thrown) {
      throw NativeCalls.unexpected(REGISTER, thrown);
    }
  }

  private static MemorySegment function(Library library, String name) {
    return library
        .symbol(name)
        .map(MemorySegment::ofAddress)
        .getOrElseThrow(
            () ->
                BifocalException.of(
                    ErrorCode.NATIVE_MISSING, "library " + library.file(), "without it", name));
  }

  private MemorySegment stub() {
    try {
      MethodHandle asked =
          MethodHandles.lookup()
              .findVirtual(
                  CubinCallback.class,
                  "asked",
                  MethodType.methodType(void.class, MemorySegment.class, MemorySegment.class))
              .bindTo(this);
      return LINKER.upcallStub(asked, ASKED, Arena.global());
    } catch (ReflectiveOperationException e) {
      throw new LinkageError("the callback of modules that ask for kernels", e);
    }
  }

  /** Called by native code, which nothing may be thrown into. */
  void asked(MemorySegment name, MemorySegment sha256) {
    try {
      handOver(answer.code(text(name), text(sha256)));
    } catch (Throwable thrown) {
      answer.failed(thrown);
      empty();
    }
  }

  private static String text(MemorySegment address) {
    return address.equals(MemorySegment.NULL) ? "" : address.reinterpret(LONGEST_TEXT).getString(0);
  }

  private void empty() {
    try {
      handOver(new byte[0]);
    } catch (Throwable thrown) {
      answer.failed(thrown);
    }
  }

  private void handOver(byte[] code) throws Throwable {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment copy = arena.allocate(Math.max(1, code.length), 16);
      MemorySegment.copy(code, 0, copy, JAVA_BYTE, 0, code.length);
      HANDING_OVER.invokeExact(handOver, copy, code.length);
    }
  }
}
