package bifocal.routing;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.layer.ImageMask;
import bifocal.core.route.RouteReason;
import java.util.function.Supplier;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Lowered requests against the enumerated masks. */
class LoweringEqualsMaskTest {
  private static final int REQUESTS = 40_000;

  @ParameterizedTest
  @EnumSource(
      value = ImageMask.class,
      names = {"OVERRIDE", "CLAMP_PAST", "CLAMP_BOTH"})
  void runsGiveEveryCellOfTheMask(ImageMask mode) {
    long seed = 7_001L + mode.ordinal();
    RandomBatches random = new RandomBatches(seed);
    int lowered = 0;
    for (int i = 0; i < REQUESTS; i++) {
      Lowering lowering = random.flip() ? Lowering.LEFT_WINDOW : Lowering.BOTH_WINDOWS;
      MaskJudge judge = new MaskJudge(random.mask(mode), true, lowering);
      Batch batch = Batch.of(random.wholeRequest());
      MMPrefixAttentionRouting policy = new MMPrefixAttentionRouting(true, lowering);
      MaskJudge.Answer answer = judge.ask(policy, batch).get().requests().getFirst();
      int at = i;
      Supplier<String> which =
          () -> "seed %d, request %d, %s, %s, %s".formatted(seed, at, judge, batch, answer);
      if (answer.reason() == RouteReason.LOWERED) {
        lowered++;
        assertThat(coversTheQueries(answer, batch.requests().getFirst())).as(which).isTrue();
        assertThat(answer.runs()).as(which).allMatch(run -> judge.gives(first(batch), run));
      } else {
        assertThat(answer.runs()).as(which).isEmpty();
      }
      assertThat(answer).as(which).isEqualTo(judge.judge(batch).get().requests().getFirst());
    }
    assertThat(lowered).isGreaterThan(REQUESTS / 5);
  }

  private static Batch.Request first(Batch batch) {
    return batch.requests().getFirst();
  }

  private static boolean coversTheQueries(MaskJudge.Answer answer, Batch.Request request) {
    int next = request.seqLen() - request.queryLen();
    for (MaskJudge.Run run : answer.runs()) {
      if (run.first() != next || run.last() < run.first()) {
        return false;
      }
      next = run.last() + 1;
    }
    return next == request.seqLen();
  }
}
