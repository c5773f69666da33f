package bifocal.core.backend;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.control.Option;
import io.vavr.control.Try;

/**
 * Version of what platform modules implement and are called by. Their jars state the one that they
 * were built against, and a jar of another one is refused before its code runs.
 */
public final class SpiVersion {
  /** The version of this build. */
  public static final int CURRENT = 1;

  /** The oldest version whose modules still run. */
  public static final int OLDEST = 1;

  /** The attribute of a jar's manifest. */
  public static final String ATTRIBUTE = "Bifocal-SPI";

  private SpiVersion() {}

  /**
   * Requires a version that this build runs.
   *
   * @param jar how messages call the jar
   * @param stated the attribute's value, absent when the jar has none
   * @throws BifocalException {@code SPI_MISMATCH} when it is too old, too new or no number
   */
  public static void require(String jar, Option<String> stated) {
    int version =
        stated
            .flatMap(text -> Try.of(() -> Integer.parseInt(text.strip())).toOption())
            .getOrElse(0);
    if (version < OLDEST || version > CURRENT) {
      throw BifocalException.of(
              ErrorCode.SPI_MISMATCH,
              ATTRIBUTE + " of " + jar,
              stated.getOrElse("none"),
              OLDEST == CURRENT ? CURRENT : OLDEST + ".." + CURRENT)
          .withRemedy(
              version > CURRENT
                  ? "it is too new: take an older one, or a newer bifocal-core"
                  : "it is too old: take one built against this bifocal-core");
    }
  }
}
