package bifocal.cuda.pack;

import bifocal.core.error.BifocalException;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.util.function.Supplier;

/**
 * What a host is searched for when it is first asked for, and never again; a search that fails is
 * the answer, too. Safe for any thread.
 *
 * @param <T> what is searched
 */
public final class FoundOnce<T> {
  private final Supplier<Validation<BifocalException, T>> search;
  private Option<Validation<BifocalException, T>> found = Option.none();

  /** Searches later, by this. */
  public FoundOnce(Supplier<Validation<BifocalException, T>> search) {
    this.search = search;
  }

  /** What was found, or why nothing was. */
  public synchronized Validation<BifocalException, T> result() {
    if (found.isEmpty()) {
      found = Option.some(searched());
    }
    return found.get();
  }

  private Validation<BifocalException, T> searched() {
    try {
      return search.get();
    } catch (BifocalException failure) {
      return Validation.invalid(failure);
    }
  }

  /**
   * What was found.
   *
   * @throws BifocalException that says why nothing was
   */
  public T require() {
    return result()
        .fold(
            why -> {
              throw why;
            },
            value -> value);
  }
}
