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

  /** What went wrong where this thread's call asked for a kernel, which no library is told of. */
  private static final ThreadLocal<Option<Throwable>> UNTOLD =
      ThreadLocal.withInitial(Option::none);

  private Failures() {}

  /** Why the last call of this thread failed. */
  static BifocalException of(String what, RuntimeLibrary library) {
    RuntimeLibrary.Raised raised = library.raised();
    BifocalException failure =
        BifocalException.of(
            ErrorCode.NATIVE_FAILED, what, raised.kind() + ": " + raised.message(), "");
    Option<Thrown> thrown = THROWN.get();
    THROWN.remove();
    Option<Throwable> untold = untold();
    if (untold.isDefined()) {
      return failure.causedBy(untold.get());
    }
    return thrown
        .filter(
            inside -> inside.kind.equals(raised.kind()) && inside.message.equals(raised.message()))
        .map(inside -> failure.causedBy(inside.cause))
        .getOrElse(failure);
  }

  /** Keeps what was thrown where there is no way to tell the library, for the caller in Java. */
  static void keep(Throwable cause) {
    UNTOLD.set(Option.some(cause));
  }

  /**
   * Requires that nothing was kept during a call that its library takes for a success.
   *
   * @throws BifocalException {@code NATIVE_FAILED}
   */
  static void requireNone(String what) {
    if (UNTOLD.get().isDefined()) {
      Throwable cause = untold().get();
      throw BifocalException.of(
              ErrorCode.NATIVE_FAILED, what, "went on after a callback failed: " + cause, "")
          .causedBy(cause);
    }
  }

  private static Option<Throwable> untold() {
    Option<Throwable> kept = UNTOLD.get();
    if (kept.isDefined()) {
      UNTOLD.remove();
    }
    return kept;
  }

  /** Tells the library that a callback failed, and keeps the exception for the caller in Java. */
  static void raise(RuntimeLibrary library, Throwable cause) {
    String kind = cause.getClass().getSimpleName();
    String message = Option.of(cause.getMessage()).getOrElse("").replace('\0', ' ');
    THROWN.set(Option.some(new Thrown(kind, message, cause)));
    library.raise(kind, message);
  }
}
