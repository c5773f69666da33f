package bifocal.tvm.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Where native code enters Java: two C functions for all callbacks, which know a callback by a
 * number. A callback is known until the library says that nobody can call it any more.
 */
@SuppressWarnings("restricted")
public final class CallbackStubs {
  private static final int FAILED = -1;
  private static final Map<Long, Callback> KNOWN = new ConcurrentHashMap<>();
  private static final AtomicLong NEXT = new AtomicLong(1);

  private static final long SAFE_CALL =
      stub(
          "called",
          MethodType.methodType(
              int.class, long.class, MemorySegment.class, int.class, MemorySegment.class),
          FunctionDescriptor.of(JAVA_INT, JAVA_LONG, ADDRESS, JAVA_INT, ADDRESS));
  private static final long DELETER =
      stub(
          "forgotten",
          MethodType.methodType(void.class, long.class),
          FunctionDescriptor.ofVoid(JAVA_LONG));

  private CallbackStubs() {}

  /** A function in Java as native code calls it. */
  @FunctionalInterface
  public interface Callback {
    /**
     * Runs, and tells of a failure by what it returns: nothing may be thrown into native code.
     *
     * @param arguments one {@code TVMFFIAny} behind the other, lent for the call
     * @param result one {@code TVMFFIAny}, none at first
     * @return 0 for success
     */
    int call(MemorySegment arguments, MemorySegment result);
  }

  /** Makes a callback known, under the number it is called with. */
  public static long remember(Callback callback) {
    long number = NEXT.getAndIncrement();
    KNOWN.put(number, callback);
    return number;
  }

  /** Forgets a callback that no native code was told of. */
  public static void forget(long number) {
    KNOWN.remove(number);
  }

  /** How many callbacks native code can call. */
  public static int known() {
    return KNOWN.size();
  }

  /** Address of the {@code TVMFFISafeCallType} of every callback. */
  public static long safeCall() {
    return SAFE_CALL;
  }

  /** Address of the {@code void (*)(void *)} by which the library gives a callback up. */
  public static long deleter() {
    return DELETER;
  }

  /** {@code int called(void *self, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result)}. */
  static int called(long self, MemorySegment arguments, int count, MemorySegment result) {
    return Option.of(KNOWN.get(self))
        .map(
            callback ->
                callback.call(
                    arguments.reinterpret((long) count * ObjectCells.ANY_BYTES),
                    result.reinterpret(ObjectCells.ANY_BYTES)))
        .getOrElse(FAILED);
  }

  /** {@code void forgotten(void *self)}. */
  static void forgotten(long self) {
    KNOWN.remove(self);
  }

  private static long stub(String method, MethodType type, FunctionDescriptor descriptor) {
    try {
      MethodHandle target = MethodHandles.lookup().findStatic(CallbackStubs.class, method, type);
      return Linker.nativeLinker().upcallStub(target, descriptor, Arena.global()).address();
    } catch (ReflectiveOperationException e) {
      throw new LinkageError("callbacks of TVM-FFI functions", e);
    }
  }
}
