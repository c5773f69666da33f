package bifocal.routing;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.layer.ImageMask;
import bifocal.routing.MutantRouting.Mistake;
import java.util.EnumMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What {@link RoutingEqualsBruteForceTest} is worth: a router with one mistake does not pass. */
class JudgeCatchesMistakesTest {
  private static final int BATCHES = 4_000;

  @ParameterizedTest
  @EnumSource(value = Mistake.class, mode = EnumSource.Mode.EXCLUDE, names = "NONE")
  void aMistakeIsCaught(Mistake mistake) {
    assertThat(wrongAnswers(mistake)).isNotEmpty();
  }

  @Test
  void theSameRouterWithoutAMistakePasses() {
    assertThat(wrongAnswers(Mistake.NONE)).isEmpty();
  }

  private static Map<ImageMask, Integer> wrongAnswers(Mistake mistake) {
    Map<ImageMask, Integer> wrong = new EnumMap<>(ImageMask.class);
    for (ImageMask mode : ImageMask.values()) {
      RandomBatches random = new RandomBatches(404L + mode.ordinal());
      for (int i = 0; i < BATCHES; i++) {
        MaskJudge judge = new MaskJudge(random.mask(mode), true, Lowering.OFF);
        Batch batch = random.batch();
        if (!judge.ask(new MutantRouting(mistake), batch).equals(judge.judge(batch))) {
          wrong.merge(mode, 1, Integer::sum);
        }
      }
    }
    return wrong;
  }
}
