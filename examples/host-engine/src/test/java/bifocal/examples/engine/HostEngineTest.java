package bifocal.examples.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import bifocal.composite.guice.PlatformModule;
import bifocal.composite.guice.PlatformModules;
import bifocal.core.device.Platform;
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

class HostEngineTest {
  private static final Pattern LAYER =
      Pattern.compile("(\\w+) +on child (\\w+), (\\d+) blocks held, error (\\S+)");

  private static String printed;
  private static List<MatchResult> layers;

  @BeforeAll
  static void run() {
    assumeThat(PlatformModules.detect().present().map(PlatformModule::platform))
        .contains(Platform.CPU);
    PrintStream before = System.out;
    ByteArrayOutputStream seen = new ByteArrayOutputStream();
    System.setOut(new PrintStream(seen, true, StandardCharsets.UTF_8));
    try {
      HostEngine.main(new String[0]);
    } finally {
      System.setOut(before);
    }
    printed = seen.toString(StandardCharsets.UTF_8);
    layers = LAYER.matcher(printed).results().toList();
  }

  @Test
  void aBackendIsSelectedForLayersWithImagesAndTheHostsOwnPairServesTheOthers() {
    assertThat(printed).startsWith("sliding on FLEX_CPU_ATTN, full on HOST_PAIR");
  }

  @Test
  void thePictureGoesToTheGeneralChildAndTheHostsPairGoesByPhase() {
    assertThat(layers)
        .extracting(layer -> layer.group(1) + " " + layer.group(2))
        .containsExactly("sliding A", "full A", "sliding B", "full SPLIT", "sliding B", "full B");
  }

  @Test
  void theSecondSessionFindsWhatTheFirstOneCached() {
    // 40 tokens are the same, and two blocks of 16 are full of them.
    assertThat(printed)
        .contains("session 0: 0 of 45 tokens are cached")
        .contains("session 1: 32 of 47 tokens are cached");
  }

  @Test
  void theSharedBeginningIsHeldOnce() {
    // Each session alone would hold three blocks.
    assertThat(layers)
        .extracting(layer -> layer.group(3))
        .containsExactly("3", "3", "4", "4", "4", "4");
  }

  @Test
  void everyStepAgreesWithTheReference() {
    assertThat(layers)
        .hasSize(6)
        .extracting(layer -> Double.parseDouble(layer.group(4)))
        .allMatch(error -> error > 0 && error < Tolerance.of(DType.BF16).out());
  }
}
