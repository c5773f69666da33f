package bifocal.cli.replay;

import bifocal.cli.replay.Replay.Outcome;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The files of a report. */
final class Report {
  private Report() {}

  /** Writes every file into a folder, which is made if it is not there. */
  static void write(Path folder, Outcome outcome) {
    try {
      Files.createDirectories(folder);
    } catch (IOException e) {
      throw BifocalException.of(
              ErrorCode.INVALID_OPTION, "report folder " + folder, e, "a writable folder")
          .causedBy(e);
    }
    StepsFile.write(folder.resolve("steps.jsonl"), outcome.records());
  }
}
