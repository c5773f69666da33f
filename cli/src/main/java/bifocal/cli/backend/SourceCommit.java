package bifocal.cli.backend;

import bifocal.core.bench.Provenance;
import io.vavr.control.Option;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.CodeSource;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The commit that the running classes were built from, as far as a checkout around them tells. */
final class SourceCommit {
  private static final List<String> DESCRIBE =
      List.of("describe", "--always", "--dirty", "--abbrev=40", "--exclude", "*");
  private static final int SECONDS = 5;

  private SourceCommit() {}

  /** The commit, with a mark when files differ from it; {@link Provenance#UNKNOWN} otherwise. */
  static String ofTheseClasses() {
    return place().flatMap(SourceCommit::of).getOrElse(Provenance.UNKNOWN);
  }

  private static Option<Path> place() {
    CodeSource source = SourceCommit.class.getProtectionDomain().getCodeSource();
    try {
      return source == null
          ? Option.none()
          : Option.of(Path.of(source.getLocation().toURI()).toAbsolutePath())
              .flatMap(file -> Option.of(Files.isDirectory(file) ? file : file.getParent()));
    } catch (URISyntaxException | IllegalArgumentException noFile) {
      return Option.none();
    }
  }

  /** The commit of the checkout around a folder. */
  static Option<String> of(Path folder) {
    ProcessBuilder git = new ProcessBuilder("git", "-C", folder.toString());
    git.command().addAll(DESCRIBE);
    try {
      Process process = git.redirectError(ProcessBuilder.Redirect.DISCARD).start();
      process.getOutputStream().close();
      try (BufferedReader output = process.inputReader(StandardCharsets.UTF_8)) {
        String line = output.readLine();
        return process.waitFor(SECONDS, TimeUnit.SECONDS) && process.exitValue() == 0
            ? Option.of(line).map(String::strip)
            : Option.none();
      } finally {
        process.destroyForcibly();
      }
    } catch (IOException noGit) {
      return Option.none();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return Option.none();
    }
  }
}
