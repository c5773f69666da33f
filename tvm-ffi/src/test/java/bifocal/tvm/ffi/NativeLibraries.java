package bifocal.tvm.ffi;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The libraries that {@code src/test/native/build.sh} built. */
public final class NativeLibraries {
  private static final Path FOLDER =
      Path.of(System.getProperty("bifocal.tvm.native", "target/native"));

  private NativeLibraries() {}

  /** A library; where it was not built, the test is skipped with the reason. */
  public static Path require(String name) {
    Path library = FOLDER.resolve(name);
    assumeTrue(Files.exists(library), () -> "no " + name + ": " + reason());
    return library;
  }

  private static String reason() {
    Path absent = FOLDER.resolve("absent.txt");
    try {
      return Files.exists(absent)
          ? Files.readString(absent).strip()
          : "src/test/native/build.sh was not run";
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
