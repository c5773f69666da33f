package bifocal.cli.select;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvFileSource;

/**
 * Selections, a row each, named after the part of the reference that they come from. Where another
 * outcome is known upstream, the name says it.
 */
class SelectionRowsTest {

  @BeforeAll
  static void needsEveryPlatform() {
    Asking.requireAllInstalled();
  }

  @ParameterizedTest(name = "{0}")
  @CsvFileSource(
      resources = "selection-rows.tsv",
      delimiter = '\t',
      numLinesToSkip = 1,
      quoteCharacter = '\u0001',
      maxCharsPerColumn = 4096)
  void row(String source, String arguments, String expected) {
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
    Expectation.check(arguments, expected);
  }

  @Test
  void theExampleOfTheReferenceIsMetToTheLetter() {
    assertThat(
            Asking.select("--capability 8.0 --use-mla --attention-backend FLASHMLA")
                .getError()
                .message())
        .isEqualTo(
            "Selected backend FLASHMLA is not valid for this configuration."
                + " Reason: ['compute capability not supported']");
  }
}
