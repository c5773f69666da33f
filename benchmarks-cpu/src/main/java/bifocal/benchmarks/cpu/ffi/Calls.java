package bifocal.benchmarks.cpu.ffi;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;

/** What a call of a library may throw. */
final class Calls {
  private Calls() {}

  static RuntimeException unexpected(String library, Throwable thrown) {
    return switch (thrown) {
      case RuntimeException known -> known;
      case Error error -> throw error;
      default ->
          BifocalException.of(ErrorCode.INTERNAL, "a call of " + library + " failed")
              .causedBy(thrown);
    };
  }

  static BifocalException failed(String library, Object seen) {
    return BifocalException.of(ErrorCode.NATIVE_FAILED, library, seen, "success");
  }
}
