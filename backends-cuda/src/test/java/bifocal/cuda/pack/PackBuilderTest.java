package bifocal.cuda.pack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/**
 * The builder of FlashInfer's modules plans what a profile asks for and keeps what is unchanged:
 * its own tests say so, with compilers that only count.
 */
class PackBuilderTest {
  private static final Path TESTS = Path.of("../kernels/flashinfer/test_build_packs.py");

  @Test
  void plansWhatAProfileAsksForAndKeepsWhatIsUnchanged() throws Exception {
    Process tests = python(TESTS);
    String said = new String(tests.getInputStream().readAllBytes(), StandardCharsets.UTF_8);

    assertThat(tests.waitFor()).as(said).isZero();
    assertThat(said).containsPattern("Ran [1-9][0-9]* tests").contains("OK");
  }

  private static Process python(Path program) {
    try {
      return new ProcessBuilder("python3", program.toString()).redirectErrorStream(true).start();
    } catch (IOException e) {
      return abort("no python3, which runs the tests of the builder: " + e.getMessage());
    }
  }
}
