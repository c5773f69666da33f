package bifocal.cli.select;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.device.Platform;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvFileSource;

/**
 * Selections, a row each, named after the part of the reference that they come from. Where another
 * outcome is known upstream, the name says it.
 */
class SelectionRowsTest {

  @ParameterizedTest(name = "{0}")
  @CsvFileSource(
      resources = "selection-rows.tsv",
      delimiter = '\t',
      numLinesToSkip = 1,
      quoteCharacter = '\u0001',
      maxCharsPerColumn = 4096)
  void row(String source, String arguments, String expected) {
    requireWhatItNames(arguments);
    Expectation.check(arguments, expected);
  }

  /** Rows of latent layers, dense and sparse, and of the models that wire their own backends. */
  @ParameterizedTest(name = "{0}")
  @CsvFileSource(
      resources = "latent-rows.tsv",
      delimiter = '\t',
      numLinesToSkip = 1,
      quoteCharacter = '\u0001',
      maxCharsPerColumn = 4096)
  void latentRow(String source, String arguments, String expected) {
    requireWhatItNames(arguments);
    Expectation.check(arguments, expected);
  }

  /** Candidates of CUDA's kernels are declared there, for every GPU; one of them, on the CPU. */
  private static void requireWhatItNames(String arguments) {
    if (arguments.contains("--platform cpu") || arguments.contains("--cpu-isa")) {
      Asking.requireInstalled(Platform.CPU);
      if (arguments.contains("FLASH_ATTN")) {
        Asking.requireInstalled(Platform.CUDA);
      }
      return;
    }
    Asking.requireInstalled(Platform.CUDA, Platform.CPU);
    if (arguments.contains("--arch")) {
      Asking.requireInstalled(Platform.ROCM);
    } else if (arguments.contains("--platform xpu")) {
      Asking.requireInstalled(Platform.XPU);
    }
  }

  @Test
  void theExampleOfTheReferenceIsMetToTheLetter() {
    Asking.requireInstalled(Platform.CUDA);
    assertThat(
            Asking.select("--capability 8.0 --use-mla --attention-backend FLASHMLA")
                .getError()
                .message())
        .isEqualTo(
            "Selected backend FLASHMLA is not valid for this configuration."
                + " Reason: ['compute capability not supported']");
  }
}
