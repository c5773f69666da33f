package bifocal.tvm;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.tvm.ffi.RuntimeLibrary;
import io.vavr.control.Option;

/**
 * Makes an exception of what the library says about a failed call, with the exception that a
 * callback in Java threw inside of it as its cause.
 */
final class Failures {
  /** What a callback of this thread threw last, and how the library was told. */
  private record Thrown(String kind, String message, Throwable cause) {}

  private static final ThreadLocal<Option<Thrown>> THROWN = ThreadLocal.withInitial(Option::none);

  private Failures() {}

  /** Why the last call of this thread failed. */
  static BifocalException of(String what, RuntimeLibrary library) {
    RuntimeLibrary.Raised raised = library.raised();
    BifocalException failure =
        BifocalException.of(
            ErrorCode.NATIVE_FAILED, what, raised.kind() + ": " + raised.message(), "");
    Option<Thrown> thrown = THROWN.get();
    THROWN.remove();
    return thrown
        .filter(
            inside -> inside.kind.equals(raised.kind()) && inside.message.equals(raised.message()))
        .map(inside -> failure.causedBy(inside.cause))
        .getOrElse(failure);
  }

  /** Tells the library that a callback failed, and keeps the exception for the caller in Java. */
  static void raise(RuntimeLibrary library, Throwable cause) {
    String kind = cause.getClass().getSimpleName();
    String message = Option.of(cause.getMessage()).getOrElse("").replace('\0', ' ');
    THROWN.set(Option.some(new Thrown(kind, message, cause)));
    library.raise(kind, message);
  }
}
