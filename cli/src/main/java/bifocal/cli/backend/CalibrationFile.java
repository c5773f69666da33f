package bifocal.cli.backend;

import bifocal.core.bench.Calibration;
import bifocal.core.bench.CalibrationJson;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.FileFailure;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** A table of measurements in a file. */
public final class CalibrationFile {
  private static final long MOST_BYTES = 16 << 20;

  private CalibrationFile() {}

  /**
   * The table, if it was measured on this host, by this version.
   *
   * @throws BifocalException {@code INVALID_OPTION} when the file cannot be read, or for everything
   *     that makes it stale or foreign; {@code MALFORMED_INPUT} when it is no table
   */
  public static Calibration validHere(Path file, Platform platform, String version) {
    return table(file).requireValidHere(HostProvenance.now(platform, version, ""));
  }

  private static Calibration table(Path file) {
    String text = read(file);
    try {
      return CalibrationJson.read(text);
    } catch (BifocalException e) {
      throw e.in("'" + file + "', " + text.length() + " characters")
          .withRemedy("write it again with bench --calibrate");
    }
  }

  private static String read(Path file) {
    try {
      if (Files.size(file) > MOST_BYTES) {
        throw BifocalException.of(
            ErrorCode.INVALID_OPTION,
            "--calibration",
            Files.size(file) + " bytes",
            "at most " + MOST_BYTES);
      }
      return Files.readString(file);
    } catch (IOException e) {
      throw FileFailure.reading("--calibration", file, e)
          .withRemedy("bench --calibrate writes one");
    }
  }
}
