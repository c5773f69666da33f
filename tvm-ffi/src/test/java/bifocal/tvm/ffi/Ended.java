package bifocal.tvm.ffi;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** How a program ended that ran in a JVM of its own, and what it wrote. */
public record Ended(int code, String output) {

  /** Runs the program of a class. */
  public static Ended of(Path folder, Class<?> program, String... arguments)
      throws IOException, InterruptedException {
    List<String> jvm =
        List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "--enable-native-access=ALL-UNNAMED",
            "-XX:+UseSerialGC",
            // The first compiler relies on the signal however often a reference was null.
            "-XX:TieredStopAtLevel=1",
            "-XX:-CreateCoredumpOnCrash",
            "-cp",
            System.getProperty("java.class.path"),
            program.getName());
    Process process =
        new ProcessBuilder(Stream.concat(jvm.stream(), Stream.of(arguments)).toList())
            .directory(folder.toFile())
            .redirectErrorStream(true)
            .start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (!process.waitFor(2, TimeUnit.MINUTES)) {
      process.destroyForcibly();
      throw new AssertionError(program + " does not end: " + output);
    }
    return new Ended(process.exitValue(), output);
  }
}
