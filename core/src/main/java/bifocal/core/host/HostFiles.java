package bifocal.core.host;

import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The files in which a system describes itself, as Linux does below {@code /proc} and {@code /sys}.
 * A file that is not there, as on other systems, is absent and no failure.
 *
 * @param root the folder that stands for the root of the file system
 */
public record HostFiles(Path root) {
  /** System property that names another root, to show how Bifocal behaves on another host. */
  public static final String PROPERTY = "bifocal.host.root";

  /** The files of this host, or those that the property names. */
  public static HostFiles ofThisHost() {
    return new HostFiles(Path.of(System.getProperty(PROPERTY, "/")));
  }

  /** A file, whether it is there or not. */
  public Path path(String absolute) {
    return root.resolve(absolute.substring(1));
  }

  /** Whether a file or folder is there. */
  public boolean has(String absolute) {
    return Files.exists(path(absolute));
  }

  /** A file's text without surrounding blanks, absent when it cannot be read. */
  public Option<String> text(String absolute) {
    return text(path(absolute));
  }

  /** A file's lines, none when it cannot be read. */
  public Seq<String> lines(String absolute) {
    return text(absolute).map(text -> Vector.ofAll(text.lines())).getOrElse(Vector.empty());
  }

  /** Text of a file of this host. */
  static Option<String> text(Path file) {
    try {
      return Option.some(Files.readString(file, StandardCharsets.ISO_8859_1).strip());
    } catch (IOException | SecurityException unreadable) {
      return Option.none();
    }
  }
}
