package bifocal.core.latent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.BifocalException;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import io.vavr.collection.List;
import io.vavr.collection.Seq;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

/** Plans of prefills with earlier context. */
class PrefillPlanTest {
  private static final PrefillPlanner PLANNER = new PrefillPlanner(1024, 16, SharedSequence.ALONE);
  private static final Seq<Integer> FOUR_EACH = List.of(4, 4, 4, 4);

  @Test
  void requestsWithoutContextAreLeftOutAndTheirTokensKnown() {
    PrefillPlan plan = PLANNER.plan(List.of(64, 0, 64, 0), FOUR_EACH).get();

    assertThat(plan.chunks().flatMap(ContextChunk::pieces).map(ContextChunk.Piece::request))
        .containsExactly(0, 2);
    assertThat(plan.withoutContext())
        .containsExactly(new PrefillPlan.Rows(4, 8), new PrefillPlan.Rows(12, 16));
  }

  @Test
  void noContextMeansNoPlan() {
    assertThat(PLANNER.plan(List.of(0, 0), List.of(4, 4))).isEmpty();
  }

  @Test
  void tokensWithoutContextHaveNoOutputAndTheLogOfNothing() {
    PrefillPlan plan = PLANNER.plan(List.of(64, 0, 64, 0), FOUR_EACH).get();
    try (Arena arena = Arena.ofConfined()) {
      TensorView out = filled(arena, 16, 2, 3);
      TensorView lse = filled(arena, 16, 2);

      plan.clearWithoutContext(out, lse);

      for (int token = 0; token < 16; token++) {
        boolean without = token / 4 % 2 == 1;
        for (int i = 0; i < 6; i++) {
          assertThat(number(out, token * 6 + i)).as("token %d", token).isEqualTo(without ? 0 : 7);
        }
        for (int i = 0; i < 2; i++) {
          assertThat(number(lse, token * 2 + i))
              .as("token %d", token)
              .isEqualTo(without ? Float.NEGATIVE_INFINITY : 7);
        }
      }
    }
  }

  @Test
  void plansOfOnePlannerAreEachTheirOwn() {
    PrefillPlan first = PLANNER.plan(List.of(64, 0), List.of(4, 4)).get();
    PrefillPlanner copy =
        new PrefillPlanner(PLANNER.rows(), PLANNER.alignment(), PLANNER.sharing());

    PrefillPlan second = copy.plan(List.of(0, 32), List.of(1, 2)).get();

    assertThat(copy).isEqualTo(PLANNER);
    assertThat(first.withoutContext()).containsExactly(new PrefillPlan.Rows(4, 8));
    assertThat(second.withoutContext()).containsExactly(new PrefillPlan.Rows(0, 1));
  }

  @Test
  void contextsOfOtherRequestsThanTheQueriesAreRefused() {
    assertThatThrownBy(() -> PLANNER.plan(List.of(64), FOUR_EACH))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining("contexts of a prefill");
  }

  @Test
  void gatheredRowsAreThoseOfEachRankInTurnWithoutPadding() {
    SharedSequence sharing = new SharedSequence(2, 64);
    ContextChunk chunk =
        new ContextChunk(
            List.of(new ContextChunk.Piece(0, 0, 200), new ContextChunk.Piece(1, 0, 70)));

    int[] rows = chunk.gathered(sharing);

    // 200 tokens: 128 and 72 rows, padded to 128 each; 70 tokens: 64 and 6 rows, padded to 64.
    assertThat(rows).hasSize(270);
    assertThat(rows[0]).isZero();
    assertThat(rows[127]).isEqualTo(127);
    assertThat(rows[128]).as("rank 1").isEqualTo(192);
    assertThat(rows[199]).isEqualTo(263);
    assertThat(rows[200]).as("request 1").isEqualTo(128);
    assertThat(rows[263]).isEqualTo(191);
    assertThat(rows[264]).as("rank 1").isEqualTo(320);
    assertThat(rows[269]).isEqualTo(325);
  }

  @Test
  void aSequenceOfOneRankIsGatheredAsItIs() {
    assertThat(
            new ContextChunk(List.of(new ContextChunk.Piece(3, 16, 5)))
                .gathered(SharedSequence.ALONE))
        .containsExactly(0, 1, 2, 3, 4);
  }

  private static TensorView filled(Arena arena, long... shape) {
    long count = 1;
    for (long size : shape) {
      count *= size;
    }
    MemorySegment memory = arena.allocate(count * Float.BYTES, Float.BYTES);
    for (int i = 0; i < count; i++) {
      memory.setAtIndex(ValueLayout.JAVA_FLOAT, i, 7);
    }
    return TensorView.ofHost(memory, DType.FP32, shape);
  }

  private static float number(TensorView tensor, int index) {
    return tensor.data().getAtIndex(ValueLayout.JAVA_FLOAT, index);
  }
}
