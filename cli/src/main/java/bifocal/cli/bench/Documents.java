package bifocal.cli.bench;

import bifocal.core.bench.BenchmarkReport.Page;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.FileFailure;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Puts results into a folder of documents: {@code results/SUITE.json}, {@code results/SUITE.svg},
 * and the section of {@code performance.md} that stands between {@code <!-- SUITE -->} and {@code
 * <!-- end of SUITE -->}.
 */
record Documents(Path folder, Suite suite) {
  private static final String PAGE = "performance.md";

  /** Says what is wrong with the folder before anything is measured for it. */
  void requireSection() {
    try {
      replaced(Files.readString(folder.resolve(PAGE)), "");
    } catch (IOException e) {
      throw unfit(e);
    }
  }

  void write(String json, Page page) {
    try {
      Path results = Files.createDirectories(folder.resolve("results"));
      Files.writeString(results.resolve(suite + ".json"), json + "\n");
      Files.writeString(results.resolve(suite + ".svg"), page.plot());
      Path document = folder.resolve(PAGE);
      Files.writeString(document, replaced(Files.readString(document), page.markdown()));
    } catch (IOException e) {
      throw unfit(e);
    }
  }

  private BifocalException unfit(IOException e) {
    return BifocalException.of(
            ErrorCode.INVALID_OPTION,
            "--docs '" + folder + "'",
            FileFailure.reason(e),
            "a folder with " + PAGE)
        .causedBy(e);
  }

  private String replaced(String document, String section) {
    String begin = "<!-- " + suite + " -->\n";
    String end = "<!-- end of " + suite + " -->\n";
    int from = document.indexOf(begin);
    int to = document.indexOf(end);
    if (from < 0 || to < from) {
      throw BifocalException.of(
          ErrorCode.INVALID_OPTION,
          "--docs",
          PAGE + " without a section for " + suite,
          begin.strip());
    }
    return document.substring(0, from + begin.length())
        + "\n"
        + section
        + "\n"
        + document.substring(to);
  }
}
