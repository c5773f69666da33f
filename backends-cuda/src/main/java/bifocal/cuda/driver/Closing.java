package bifocal.cuda.driver;

import org.jspecify.annotations.Nullable;

/** Closes several things one after another, each whatever became of those before it. */
public final class Closing {
  private @Nullable RuntimeException failure;

  /** Closes things because of a failure, to which later ones are added. */
  public static Closing after(RuntimeException failure) {
    Closing closing = new Closing();
    closing.failure = failure;
    return closing;
  }

  /** Closes the next thing. */
  public Closing then(Runnable close) {
    try {
      close.run();
    } catch (RuntimeException thrown) {
      RuntimeException first = failure;
      if (first == null) {
        failure = thrown;
      } else {
        first.addSuppressed(thrown);
      }
    }
    return this;
  }

  /** Throws the first failure there was, the others suppressed in it. */
  public void end() {
    RuntimeException first = failure;
    if (first != null) {
      throw first;
    }
  }
}
