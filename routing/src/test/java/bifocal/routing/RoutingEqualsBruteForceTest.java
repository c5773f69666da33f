package bifocal.routing;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.layer.ImageMask;
import bifocal.core.route.Child;
import bifocal.core.route.RouteReason;
import io.vavr.control.Either;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Routing against the enumerated masks, in both directions: B never when wrong, always if right.
 */
class RoutingEqualsBruteForceTest {
  private static final int BATCHES = 10_000;

  @ParameterizedTest
  @EnumSource(ImageMask.class)
  void everyAnswerIsTheEnumeratedOne(ImageMask mode) {
    long seed = 20_261_129L + mode.ordinal();
    RandomBatches random = new RandomBatches(seed);
    for (int i = 0; i < BATCHES; i++) {
      MaskJudge judge = new MaskJudge(random.mask(mode), random.flip(), random.lowering());
      Batch batch = random.batch();
      assertThat(judge.ask(policy(judge), batch))
          .as("seed %d, batch %d, %s, %s", seed, i, judge, batch)
          .isEqualTo(judge.judge(batch));
    }
  }

  @ParameterizedTest
  @CsvSource({"OVERRIDE", "CLAMP_PAST", "CLAMP_BOTH"})
  void theBatchesHoldEveryKindOfAnswer(ImageMask mode) {
    RandomBatches random = new RandomBatches(20_261_129L + mode.ordinal());
    Map<RouteReason, Integer> reasons = new EnumMap<>(RouteReason.class);
    Map<Child, Integer> children = new EnumMap<>(Child.class);
    Map<String, Integer> routes = new HashMap<>();
    int refused = 0;
    for (int i = 0; i < BATCHES; i++) {
      MaskJudge judge = new MaskJudge(random.mask(mode), random.flip(), random.lowering());
      Either<MaskJudge.Refusal, MaskJudge.Answers> answers = judge.judge(random.batch());
      refused += answers.isLeft() ? 1 : 0;
      for (MaskJudge.Answers some : answers) {
        routes.merge(some.route(), 1, Integer::sum);
        for (MaskJudge.Answer answer : some.requests()) {
          reasons.merge(answer.reason(), 1, Integer::sum);
          children.merge(answer.child(), 1, Integer::sum);
        }
      }
    }
    assertThat(refused).isGreaterThan(100);
    assertThat(routes.values()).hasSize(4).allMatch(count -> count > 100);
    assertThat(children.values()).hasSize(2).allMatch(count -> count > 1000);
    assertThat(reasons)
        .containsKeys(
            RouteReason.EMPTY,
            RouteReason.NO_IMAGE_QUERY,
            RouteReason.MASK_EQUAL,
            RouteReason.NEEDS_FUTURE_KEY,
            RouteReason.LOWERED,
            RouteReason.FOLLOWS_BATCH);
    assertThat(reasons.containsKey(RouteReason.NEEDS_KEY_BEHIND_WINDOW))
        .isEqualTo(mode == ImageMask.OVERRIDE);
    assertThat(reasons.containsKey(RouteReason.NOT_LOWERABLE))
        .isEqualTo(mode != ImageMask.CLAMP_PAST);
  }

  private static MMPrefixAttentionRouting policy(MaskJudge judge) {
    return new MMPrefixAttentionRouting(judge.splits(), judge.lowering());
  }
}
