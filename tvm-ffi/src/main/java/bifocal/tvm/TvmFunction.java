package bifocal.tvm;

import bifocal.core.error.BifocalException;

/** A function of a TVM-FFI library, or one handed around as a value. */
public sealed interface TvmFunction permits ModuleFunction, FunctionObject {
  /** What messages call it. */
  String name();

  /** The runtime that its errors are raised in. */
  TvmRuntime runtime();

  /**
   * Calls it; the result is then in the arguments. Nothing is allocated in the Java heap.
   *
   * @throws BifocalException {@code NATIVE_FAILED} with kind and text of the error that it raised;
   *     {@code WRONG_THREAD} or {@code CLOSED} before the call, if the arguments belong to another
   *     thread, are closed, or name memory or an object that is gone
   */
  void call(Arguments arguments);

  /**
   * Calls it with a stream, which the calling thread forgets afterwards.
   *
   * @throws BifocalException as {@link #call(Arguments)}
   */
  default void call(Arguments arguments, DeviceStream stream) {
    arguments.enter(stream);
    try {
      call(arguments);
    } finally {
      arguments.leave(stream);
    }
  }

  /**
   * Calls it with values, for calls that need not be quick.
   *
   * @return what it returned; a reference in it is the caller's to close
   * @throws BifocalException as {@link #call(Arguments)}
   */
  default Any invoke(Any... values) {
    try (Arguments arguments = runtime().arguments(values.length)) {
      for (int i = 0; i < values.length; i++) {
        arguments.set(i, values[i]);
      }
      call(arguments);
      return arguments.result();
    }
  }
}
