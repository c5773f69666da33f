package bifocal.cpu.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** C24: whatever a host does wrong with native memory or libraries, the JVM lives. */
final class ChildJvmTest {
  private static final int SECONDS = 240;

  @ParameterizedTest
  @EnumSource(FaultScene.class)
  void theJvmOutlives(FaultScene scene) throws Exception {
    assertThat(play(scene)).contains("played " + scene);
  }

  @ParameterizedTest
  @EnumSource(FaultScene.class)
  @Tag("full")
  void theJvmOutlivesManyTimesOnEveryKernel(FaultScene scene) throws Exception {
    for (String kernels : List.of("native", "vector", "scalar")) {
      assertThat(play(scene, "-Dbifocal.cpu.kernels=" + kernels, "-Dbifocal.fault.rounds=25"))
          .contains("played " + scene);
    }
  }

  @Test
  void aLibraryThatIsNotThereIsNamed(@TempDir Path folder) throws Exception {
    Path library = folder.resolve("libbifocal_cpu.so");
    assertThat(playOn(library)).contains("refused NATIVE_MISSING", "not found", library.toString());
  }

  @Test
  void aLibraryWhoseOwnDependencyIsMissingTellsTheLoadersText(@TempDir Path folder)
      throws Exception {
    Path dependency = compile(folder, "libabsent.so", "int absent(void) { return 1; }");
    Path library =
        compile(
            folder,
            "libbifocal_cpu.so",
            "int absent(void); int bifocal_cpu_abi_version(void) { return absent(); }",
            dependency.toString());
    Files.delete(dependency);
    assertThat(playOn(library))
        .contains("refused NATIVE_MISSING", "cannot be loaded", "libabsent.so");
  }

  @Test
  void aLibraryWithoutASymbolIsTooOld(@TempDir Path folder) throws Exception {
    Path library = compile(folder, "libbifocal_cpu.so", "int other(void) { return 1; }");
    assertThat(playOn(library))
        .contains("refused NATIVE_MISSING", "too old", "bifocal_cpu_abi_version");
  }

  @Test
  void aLibraryForAnotherProcessorIsNotRun() throws Exception {
    ProcessBuilder child = child(FaultScene.KERNELS_CHOSEN, "-Dbifocal.cpu.kernels=native");
    child.environment().put("BIFOCAL_CPU_ISA", "another");
    String text = end(child);
    assumeTrue(!text.contains("not packaged"), "the C kernels are not built");
    assertThat(text).contains("refused NATIVE_MISSING", "instruction set", "unset BIFOCAL_CPU_ISA");
  }

  @ParameterizedTest
  @CsvSource({"fastest, INVALID_OPTION", "'', INVALID_OPTION"})
  void kernelsOfAnUnknownNameAreRefused(String name, String code) throws Exception {
    assertThat(play(FaultScene.KERNELS_CHOSEN, "-Dbifocal.cpu.kernels=" + name))
        .contains("refused " + code, "native, vector or scalar");
  }

  private static String playOn(Path library) throws Exception {
    return play(
        FaultScene.KERNELS_CHOSEN,
        "-Dbifocal.cpu.kernels=native",
        "-Dbifocal.cpu.library=" + library);
  }

  private static String play(FaultScene scene, String... flags) throws Exception {
    return end(child(scene, flags));
  }

  private static ProcessBuilder child(FaultScene scene, String... flags) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of(flags));
    command.addAll(
        List.of(
            "--enable-native-access=ALL-UNNAMED",
            "--add-modules",
            "jdk.incubator.vector",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            System.getProperty("java.class.path"),
            FaultScene.class.getName(),
            scene.name()));
    ProcessBuilder child = new ProcessBuilder(command).redirectErrorStream(true);
    // What is released is unmapped, not kept for later: reading it is seen at once.
    child.environment().put("MALLOC_MMAP_THRESHOLD_", "16384");
    return child;
  }

  private static String end(ProcessBuilder child) throws Exception {
    Process process = child.start();
    process.getOutputStream().close();
    process.onExit().orTimeout(SECONDS, TimeUnit.SECONDS).exceptionally(late -> kill(process));
    String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    process.waitFor();
    assertThat(process.exitValue()).as(text).isZero();
    return text;
  }

  private static Process kill(Process process) {
    System.err.println("a child JVM is ended after " + SECONDS + " s: " + process.info());
    return process.destroyForcibly();
  }

  private static Path compile(Path folder, String name, String source, String... libraries)
      throws Exception {
    Path code = Files.writeString(folder.resolve(name + ".c"), source);
    Path library = folder.resolve(name);
    List<String> command = new ArrayList<>(List.of("cc", "-shared", "-fPIC", "-o"));
    command.addAll(List.of(library.toString(), code.toString()));
    command.addAll(List.of(libraries));
    Process compiler;
    try {
      compiler = new ProcessBuilder(command).redirectErrorStream(true).start();
    } catch (IOException e) {
      return Assumptions.abort("no C compiler: " + e.getMessage());
    }
    String text = new String(compiler.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(compiler.waitFor()).as(text).isZero();
    return library;
  }
}
