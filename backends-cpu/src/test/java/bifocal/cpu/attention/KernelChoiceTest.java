package bifocal.cpu.attention;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cpu.ffi.NativeKernels;
import io.vavr.control.Option;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Other JVMs, with less, still start; and say what they run on, and why. */
final class KernelChoiceTest {
  /** Prints the chosen kernels. */
  static final class Main {
    private Main() {}

    public static void main(String[] arguments) {
      KernelChoice choice = KernelChoice.ofThisJvm();
      System.out.println(choice.kernels().name() + ": " + choice.why());
    }
  }

  private record Run(int exit, String text) {}

  private static Run run(Map<String, String> environment, String... flags) throws Exception {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("-XX:TieredStopAtLevel=1");
    command.add("--enable-native-access=ALL-UNNAMED");
    command.addAll(List.of(flags));
    command.add("-cp");
    command.add(System.getProperty("java.class.path"));
    command.add(Main.class.getName());
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.environment().putAll(environment);
    Process process = builder.start();
    String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    return new Run(process.waitFor(), text);
  }

  @Test
  void withoutTheLibraryTheVectorApiComputes() throws Exception {
    Run run =
        run(
            Map.of(),
            "--add-modules=jdk.incubator.vector",
            "-D" + NativeKernels.PROPERTY + "=no/such/library.so");

    assertThat(run.exit()).as(run.text()).isZero();
    assertThat(run.text())
        .contains("vector-")
        .contains("not found: no/such/library.so")
        .contains("run on the Vector API, not on C kernels");
  }

  @Test
  void withoutTheIncubatorModuleScalarJavaComputes() throws Exception {
    Run run = run(Map.of(), "-D" + NativeKernels.PROPERTY + "=no/such/library.so");

    assertThat(run.exit()).as(run.text()).isZero();
    assertThat(run.text())
        .contains("scalar: ")
        .contains("run on scalar Java")
        .contains("--add-modules jdk.incubator.vector");
  }

  @Test
  void anInstructionSetThatCannotRunIsNotReplacedInSilence() throws Exception {
    Run run = run(Map.of("BIFOCAL_CPU_ISA", "quantum"), "--add-modules=jdk.incubator.vector");

    assertThat(run.exit()).as(run.text()).isZero();
    assertThat(run.text()).contains("vector-").doesNotContain("native-");
  }

  @Test
  void kernelsThatNobodyKnowsAreRefused() {
    assertThatThrownBy(() -> KernelChoice.choose(Option.some("quantum")))
        .isInstanceOfSatisfying(
            BifocalException.class,
            refusal -> {
              assertThat(refusal.code()).isEqualTo(ErrorCode.INVALID_OPTION);
              assertThat(refusal).hasMessageContaining("native, vector or scalar");
            });
  }

  @Test
  void namedKernelsAreTaken() {
    assertThat(KernelChoice.choose(Option.some("scalar")).kernels().name()).isEqualTo("scalar");
    assertThat(KernelChoice.choose(Option.some("vector")).kernels().name()).startsWith("vector-");
  }
}
