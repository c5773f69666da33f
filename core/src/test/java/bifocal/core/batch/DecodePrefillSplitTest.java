package bifocal.core.batch;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.batch.DecodePrefillSplit.Rule;
import bifocal.core.error.ErrorCode;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class DecodePrefillSplitTest {

  @ParameterizedTest
  @CsvSource({
    "1 1 1, 1, false, 3 0 3 0",
    "1 2 1 3 2 1 2, 3, false, 7 0 12 0",
    "4 5 6 7, 3, false, 0 4 0 22",
    "2 1 3 4 5 6 7 8, 4, false, 4 4 10 26",
    "1 1 1, 1, true, 3 0 3 0",
    "2 2 1 3 2 1 2, 3, true, 2 5 4 9",
    "4 5 6 7, 3, true, 0 4 0 22",
    "2 2 2 4 5 6 7 8, 4, true, 3 5 6 30",
    "2 1 2 4 5 6 7 8, 4, true, 1 7 2 33"
  })
  void aBatchIsCutAtItsFirstPrefill(String lengths, int threshold, boolean alike, String wanted) {
    Rule rule = alike ? Rule.upTo(threshold).alike() : Rule.upTo(threshold);
    assertThat(DecodePrefillSplit.of(Batches.prefills(numbers(lengths)), rule))
        .isEqualTo(split(wanted));
  }

  @Test
  void requestsThatWorkOnTheirPromptMayBeLeftOut() {
    CommonAttentionMetadata batch =
        Batches.of(new int[] {1, 1}, new int[] {5, 5})
            .prefilling(new boolean[] {false, true})
            .build();
    assertThat(DecodePrefillSplit.of(batch, Rule.upTo(1).alike().withoutShortExtends()))
        .isEqualTo(split("1 1 1 1"));
    assertThat(DecodePrefillSplit.of(batch, Rule.upTo(1))).isEqualTo(split("2 0 2 0"));
  }

  @Test
  void leavingThemOutNeedsToKnowThem() {
    CommonAttentionMetadata batch = Batches.prefills(1, 1);
    assertRefused(
        ErrorCode.INVALID_PARAMETER,
        () -> DecodePrefillSplit.of(batch, Rule.upTo(1).withoutShortExtends()));
  }

  @Test
  void aRequestWithoutQueriesDoesNotSpoilAUniformBatchAndPaddedTokensCountWithIt() {
    CommonAttentionMetadata batch = Batches.prefills(2, 2, 2, 0);
    assertThat(DecodePrefillSplit.of(batch, Rule.upTo(3).alike(), 8)).isEqualTo(split("4 0 8 0"));
  }

  @Test
  void paddedRequestsAreNotCounted() {
    CommonAttentionMetadata batch =
        Batches.of(new int[] {1, 1, 700}, new int[] {9, 9, 700}).live(2).build();
    assertThat(DecodePrefillSplit.of(batch, Rule.upTo(1))).isEqualTo(split("2 0 2 0"));
  }

  @Test
  void anEmptyBatchHasNeither() {
    CommonAttentionMetadata batch = Batches.of(new int[] {3}, new int[] {3}).live(0).build();
    assertThat(DecodePrefillSplit.of(batch, Rule.upTo(1))).isEqualTo(split("0 0 0 0"));
  }

  @ParameterizedTest
  @ValueSource(ints = {0, -3})
  void aThresholdIsPositive(int threshold) {
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> Rule.upTo(threshold));
  }

  private static DecodePrefillSplit split(String wanted) {
    int[] parts = numbers(wanted);
    return new DecodePrefillSplit(parts[0], parts[1], parts[2], parts[3]);
  }

  private static int[] numbers(String text) {
    return Arrays.stream(text.split(" ")).mapToInt(Integer::parseInt).toArray();
  }
}
