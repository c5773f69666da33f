package bifocal.tvm.ffi;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;

/** What becomes of a throwable that comes out of a method handle. */
final class NativeCalls {
  private NativeCalls() {}

  /** The exception to throw: as it is if it may be, else as a broken promise of this package. */
  static RuntimeException unexpected(String function, Throwable thrown) {
    return switch (thrown) {
      case RuntimeException known -> known;
      case Error error -> throw error;
      default ->
          BifocalException.of(ErrorCode.INTERNAL, "a call of " + function + " failed")
              .causedBy(thrown);
    };
  }
}
