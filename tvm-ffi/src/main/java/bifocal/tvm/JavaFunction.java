package bifocal.tvm;

import io.vavr.collection.Seq;

/** A function in Java that native code can call, from any thread. */
@FunctionalInterface
public interface JavaFunction {
  /**
   * Runs.
   *
   * <p>Arguments are good until it returns: lent tensors, and references, which are closed then. A
   * reference in the result is handed over. Whatever it throws becomes an error of the library, and
   * the cause of the exception that its caller in Java sees.
   */
  Any call(Seq<Any> arguments);
}
