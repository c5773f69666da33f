package bifocal.core.backend;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.control.Option;
import java.util.Locale;
import java.util.regex.Pattern;

/**
 * Name of a backend, upper case, for instance {@code FLASH_ATTN}. The pair of an unnamed composite
 * reads {@code A+B}, a nested one {@code (A+B)+C}.
 */
public record BackendName(String value) implements Comparable<BackendName> {
  private static final Pattern ALLOWED = Pattern.compile("[A-Z0-9_+()]+");

  public BackendName {
    if (!ALLOWED.matcher(value).matches()) {
      throw BifocalException.of(
          ErrorCode.INVALID_OPTION,
          "name of a backend",
          "'" + value + "'",
          "letters, digits and underscores");
    }
  }

  /**
   * A name in any letter case.
   *
   * @throws BifocalException {@code INVALID_OPTION} when it is empty or holds other characters
   */
  public static BackendName of(String value) {
    return new BackendName(Option.of(value).getOrElse("").strip().toUpperCase(Locale.ROOT));
  }

  @Override
  public int compareTo(BackendName other) {
    return value.compareTo(other.value);
  }

  @Override
  public String toString() {
    return value;
  }
}
