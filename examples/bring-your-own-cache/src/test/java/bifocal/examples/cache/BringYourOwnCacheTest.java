package bifocal.examples.cache;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.tensor.DType;
import bifocal.reference.Tolerance;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class BringYourOwnCacheTest {
  private static final Pattern STEP =
      Pattern.compile("tokens (\\[.*?]) +blocks (\\[.*]) +route (\\w+) +error (\\S+)");

  private static String printed;
  private static List<MatchResult> steps;

  @BeforeAll
  static void run() {
    PrintStream before = System.out;
    ByteArrayOutputStream seen = new ByteArrayOutputStream();
    System.setOut(new PrintStream(seen, true, StandardCharsets.UTF_8));
    try {
      BringYourOwnCache.main(new String[0]);
    } finally {
      System.setOut(before);
    }
    printed = seen.toString(StandardCharsets.UTF_8);
    steps = STEP.matcher(printed).results().toList();
  }

  @Test
  void aPairMadeByConstructorsRunsOverTheHostsBlocks() {
    assertThat(printed).startsWith("FLEX_ATTENTION+CPU_ATTN over CPU_PACKED blocks of 16 tokens");
  }

  @Test
  void thePicturesGoToTheGeneralChildAndTheRestOfTheBatchDoesNotFollow() {
    assertThat(steps)
        .extracting(step -> step.group(3))
        .containsExactly("A", "B", "SPLIT", "B", "B");
  }

  @Test
  void blocksAreTheHostsToGiveOutAndToUseAgain() {
    assertThat(steps)
        .extracting(step -> step.group(2))
        .containsExactly(
            "[[1, 2], [], []]",
            "[[1, 2], [3, 4, 5], []]",
            "[[1, 2], [3, 4, 5, 6], [7]]",
            "[[2, 1, 8], [3, 4, 5, 6], [7]]",
            "[[2, 1, 8], [3, 4, 5, 6], [7]]");
  }

  @Test
  void everyStepAgreesWithTheReference() {
    assertThat(steps)
        .hasSize(5)
        .extracting(step -> Double.parseDouble(step.group(4)))
        .allMatch(error -> error > 0 && error < Tolerance.of(DType.BF16).out());
  }

  @Test
  void guiceIsNotThere() {
    assertThatThrownBy(() -> Class.forName("com.google.inject.Injector"))
        .isInstanceOf(ClassNotFoundException.class);
  }
}
