package bifocal.cli.replay;

import bifocal.core.error.BifocalException;
import bifocal.core.error.FileFailure;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/** Writes text files whole or not at all: until the last character, what was there stays there. */
final class WholeFile {
  private WholeFile() {}

  /** What goes into a file. */
  interface Content {
    void writeTo(Writer out) throws IOException;
  }

  /**
   * Writes a file.
   *
   * @throws BifocalException {@code INVALID_OPTION} when it cannot be written
   */
  static void write(Path file, Content content) {
    Path partial = file.resolveSibling(file.getFileName() + ".partial");
    try {
      try (Writer out = Files.newBufferedWriter(partial, StandardCharsets.UTF_8)) {
        content.writeTo(out);
      }
      Files.move(partial, file, StandardCopyOption.REPLACE_EXISTING);
    } catch (IOException e) {
      throw FileFailure.writing("--report", file, e);
    } finally {
      discard(partial);
    }
  }

  private static void discard(Path partial) {
    try {
      Files.deleteIfExists(partial);
    } catch (IOException e) {
      partial.toFile().deleteOnExit();
    }
  }
}
