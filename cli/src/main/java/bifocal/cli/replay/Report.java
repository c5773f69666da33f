package bifocal.cli.replay;

import bifocal.cli.replay.Replay.Outcome;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.FileFailure;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The files of a report. */
final class Report {
  /** The page for a person. */
  static final String PAGE = "report.html";

  /** The lines for a program. */
  static final String STEPS = "steps.jsonl";

  private Report() {}

  /**
   * Makes the folder of a report if it is not there.
   *
   * @throws BifocalException {@code INVALID_OPTION} when nothing can be written there
   */
  static void prepare(Path folder) {
    if (folder.toString().isEmpty()) {
      throw BifocalException.of(ErrorCode.INVALID_OPTION, "--report: '' names no folder")
          .withRemedy("name one, or leave its value out for the default");
    }
    if (Files.exists(folder) && !Files.isDirectory(folder)) {
      throw refused(folder, "a file");
    }
    try {
      Files.createDirectories(folder);
    } catch (IOException e) {
      throw refused(folder, FileFailure.reason(e)).causedBy(e);
    }
    if (!Files.isWritable(folder)) {
      throw refused(folder, "not writable");
    }
  }

  private static BifocalException refused(Path folder, String why) {
    return BifocalException.of(
            ErrorCode.INVALID_OPTION,
            "--report: report folder '" + folder + "'",
            why,
            "a writable folder")
        .withRemedy("name another with --report DIR");
  }

  /** Writes every file of a report into its folder. */
  static void write(Path folder, Outcome outcome, ReportData data) {
    prepare(folder);
    StepsFile.write(folder.resolve(STEPS), outcome.records());
    ReportPage.write(folder.resolve(PAGE), data);
  }
}
