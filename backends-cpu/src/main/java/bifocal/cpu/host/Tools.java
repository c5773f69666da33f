package bifocal.cpu.host;

import io.vavr.control.Option;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;

/** The programs that build the C kernels. */
@FunctionalInterface
interface Tools {
  /** First line that a program on the path says of its version, absent when it is not there. */
  Option<String> version(String name);

  /** The programs of this host. */
  static Tools ofThisHost() {
    return name -> file(name, Option.of(System.getenv("PATH")).getOrElse("")).map(Tools::firstLine);
  }

  /** A program's file among the folders of a path. */
  static Option<Path> file(String name, String path) {
    for (String folder : path.split(Pattern.quote(java.io.File.pathSeparator))) {
      Path file = Path.of(folder.isEmpty() ? "." : folder, name);
      if (Files.isExecutable(file) && !Files.isDirectory(file)) {
        return Option.some(file);
      }
    }
    return Option.none();
  }

  private static String firstLine(Path file) {
    try {
      Process process =
          new ProcessBuilder(file.toString(), "--version").redirectErrorStream(true).start();
      process.getOutputStream().close();
      try (BufferedReader output = process.inputReader(StandardCharsets.UTF_8)) {
        String line = output.readLine();
        return line == null ? file.toString() : line.strip();
      } finally {
        if (!process.waitFor(2, TimeUnit.SECONDS)) {
          process.destroyForcibly();
        }
      }
    } catch (IOException e) {
      return file + ", which does not run: " + e.getMessage();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return file.toString();
    }
  }
}
