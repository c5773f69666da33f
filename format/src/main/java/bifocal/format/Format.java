package bifocal.format;

import com.google.googlejavaformat.java.Formatter;
import com.google.googlejavaformat.java.FormatterException;
import com.google.googlejavaformat.java.ImportOrderer;
import com.google.googlejavaformat.java.JavaFormatterOptions.Style;
import com.google.googlejavaformat.java.RemoveUnusedImports;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/**
 * Runs google-java-format over every Java source below a folder.
 *
 * <p>It is a program of its own because the formatter reads sources with the compiler of the JVM it
 * runs in: inside a Maven that runs on an older Java it could not read ours.
 */
final class Format {

  private static final Set<String> SKIPPED = Set.of("target", ".git", "node_modules");

  private final Formatter formatter = new Formatter();

  private Format() {}

  /** Takes {@code check} or {@code apply}, and the folder. */
  public static void main(String[] arguments) throws IOException {
    Mode mode = Mode.valueOf(arguments[0].toUpperCase(Locale.ROOT));
    Path root = Path.of(arguments[1]).toRealPath();
    Format format = new Format();
    List<Path> unformatted =
        sources(root).parallelStream().filter(source -> format.differs(source, mode)).toList();
    switch (mode) {
      case APPLY -> System.out.println("Formatted " + unformatted.size() + " files");
      case CHECK -> {
        if (!unformatted.isEmpty()) {
          System.err.println("Not formatted:");
          unformatted.forEach(source -> System.err.println("  " + root.relativize(source)));
          System.err.println("Run: mvn -q -pl format verify -Dformat=apply");
          System.exit(1);
        }
      }
    }
  }

  private static List<Path> sources(Path root) throws IOException {
    List<Path> sources = new ArrayList<>();
    Files.walkFileTree(
        root,
        new SimpleFileVisitor<>() {
          @Override
          public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes attributes) {
            return SKIPPED.contains(String.valueOf(folder.getFileName()))
                ? FileVisitResult.SKIP_SUBTREE
                : FileVisitResult.CONTINUE;
          }

          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
            if (file.toString().endsWith(".java")) {
              sources.add(file);
            }
            return FileVisitResult.CONTINUE;
          }
        });
    return sources;
  }

  private boolean differs(Path source, Mode mode) {
    try {
      String before = Files.readString(source);
      String after = formatted(before);
      boolean differs = !before.equals(after);
      if (differs && mode == Mode.APPLY) {
        Files.writeString(source, after);
      }
      return differs;
    } catch (FormatterException exception) {
      throw new IllegalStateException(source + ": " + exception.getMessage(), exception);
    } catch (IOException exception) {
      throw new UncheckedIOException(source.toString(), exception);
    }
  }

  private String formatted(String source) throws FormatterException {
    String used = RemoveUnusedImports.removeUnusedImports(source);
    return formatter.formatSource(ImportOrderer.reorderImports(used, Style.GOOGLE));
  }

  private enum Mode {
    CHECK,
    APPLY
  }
}
