package bifocal.cli.select;

import io.vavr.control.Option;
import org.jspecify.annotations.Nullable;

/** The value of an option that a user may leave out. */
final class Given {
  private Given() {}

  static <T> Option<T> of(@Nullable T value) {
    return value == null ? Option.none() : Option.some(value);
  }
}
