package bifocal.cli.select;

import bifocal.cli.command.CliFailure;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.NearestName;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.util.function.Function;

/** Reads the value of an option that has few values, in any letter case. */
final class Choice {
  private Choice() {}

  /** The value that a user calls so; else a refusal that names the nearest and all others. */
  static <T> T of(String option, String given, T[] values, Function<T, String> label) {
    Seq<String> labels = Vector.of(values).map(label);
    return Vector.of(values)
        .find(value -> label.apply(value).equalsIgnoreCase(given.strip()))
        .getOrElseThrow(
            () ->
                CliFailure.of(
                    ErrorCode.INVALID_OPTION,
                    option
                        + ": unknown value '"
                        + given
                        + "'; "
                        + NearestName.adviceAndAll(given, labels)));
  }
}
