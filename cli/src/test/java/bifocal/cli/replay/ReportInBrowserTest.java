package bifocal.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The page in headless Chromium, where there is one. */
class ReportInBrowserTest {
  private static final List<String> NAMES =
      List.of("chromium", "chromium-browser", "google-chrome", "google-chrome-stable");
  private static final String LIGHT = "1";
  private static final String DARK = "0";

  @TempDir Path folder;

  @ParameterizedTest
  @ValueSource(strings = {LIGHT, DARK})
  void opensWithoutAWordOnTheConsole(String scheme) throws Exception {
    Path page = page();
    assertThat(open(page, scheme).console()).isEmpty();
  }

  @Test
  void showsVerdictTimelineAndReasons() throws Exception {
    String shown = open(page(), LIGHT).document();
    assertThat(shown)
        .contains("✓ All checks passed")
        .contains("3 requests through FLEX_CPU_ATTN")
        .contains("Timeline of ")
        .contains("aria-valuetext=\"step ")
        .containsPattern("query \\d+ needs key \\d+")
        .contains("MMPrefixAttentionRouting, batches divided by request");
  }

  private record Opened(String document, List<String> console) {}

  private Path page() throws IOException {
    assumeTrue(browser().isPresent(), "no Chromium on the path");
    Path out = folder.resolve("out");
    assertThat(SmallReplay.in(folder, "--report=" + out).status()).isZero();
    return out.resolve("report.html");
  }

  private Opened open(Path page, String scheme) throws IOException, InterruptedException {
    Path document = folder.resolve("document.html");
    Path log = folder.resolve("log.txt");
    Process process =
        new ProcessBuilder(
                browser().orElseThrow().toString(),
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--enable-logging=stderr",
                "--user-data-dir=" + folder.resolve("profile" + scheme),
                "--blink-settings=preferredColorScheme=" + scheme,
                "--virtual-time-budget=3000",
                "--dump-dom",
                page.toUri().toString())
            .redirectOutput(document.toFile())
            .redirectError(log.toFile())
            .start();
    boolean ended = process.waitFor(120, TimeUnit.SECONDS);
    process.descendants().forEach(ProcessHandle::destroyForcibly);
    process.destroyForcibly().waitFor();
    assertThat(ended).as("the browser ends by itself").isTrue();
    return new Opened(
        Files.readString(document),
        Files.readAllLines(log).stream().filter(line -> line.contains("CONSOLE")).toList());
  }

  private static Optional<Path> browser() {
    List<Path> candidates = new ArrayList<>();
    for (String place : System.getenv("PATH").split(File.pathSeparator)) {
      NAMES.forEach(name -> candidates.add(Path.of(place, name)));
    }
    return candidates.stream().filter(Files::isExecutable).findFirst();
  }
}
