package bifocal.core.graph;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import bifocal.core.batch.Batches;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.error.ErrorCode;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class GraphSupportTest {

  @Test
  void theWeakerOfTwoDecides() {
    assertThat(GraphSupport.ALWAYS.weakest(GraphSupport.UNIFORM_BATCH))
        .isEqualTo(GraphSupport.UNIFORM_BATCH);
    assertThat(
            GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE
                .weakest(GraphSupport.ALWAYS)
                .weakest(GraphSupport.UNIFORM_BATCH))
        .isEqualTo(GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE);
    assertThat(GraphSupport.ALWAYS.weakest(GraphSupport.NEVER)).isEqualTo(GraphSupport.NEVER);
  }

  @ParameterizedTest
  @CsvSource({
    "1 1 1, false, true, true, true",
    "4 4 4, false, false, true, true",
    "7 1 1, false, false, false, true",
    "1 1 0, false, false, false, true"
  })
  void eachLevelCoversItsKindOfBatch(
      String queries, boolean never, boolean singleToken, boolean uniform, boolean always) {
    CommonAttentionMetadata batch =
        Batches.prefills(Arrays.stream(queries.split(" ")).mapToInt(Integer::parseInt).toArray());
    assertThat(GraphSupport.NEVER.covers(batch)).isEqualTo(never);
    assertThat(GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE.covers(batch)).isEqualTo(singleToken);
    assertThat(GraphSupport.UNIFORM_BATCH.covers(batch)).isEqualTo(uniform);
    assertThat(GraphSupport.ALWAYS.covers(batch)).isEqualTo(always);
  }

  @Test
  void paddingNeverDecides() {
    CommonAttentionMetadata batch =
        Batches.of(new int[] {1, 1, 90}, new int[] {5, 5, 90}).live(2).build();
    assertThat(GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE.covers(batch)).isTrue();
  }

  @Test
  void aGraphIsReplayedForItsOwnKeyOnly() {
    GraphKey captured = new GraphKey("B", 8, 8, true);
    assertThatCode(() -> new GraphKey("B", 8, 8, true).requireReplayOf(captured))
        .doesNotThrowAnyException();
    for (GraphKey other :
        new GraphKey[] {
          new GraphKey("A", 8, 8, true),
          new GraphKey("B", 16, 8, true),
          new GraphKey("B", 8, 16, true)
        }) {
      assertRefused(ErrorCode.GRAPH_KEY_MISMATCH, () -> other.requireReplayOf(captured));
    }
    assertRefused(
        ErrorCode.NOT_CAPTURABLE, () -> new GraphKey("B", 8, 8, false).requireReplayOf(captured));
    assertRefused(ErrorCode.NOT_CAPTURABLE, () -> GraphKey.EAGER.requireReplayOf(GraphKey.EAGER));
  }
}
