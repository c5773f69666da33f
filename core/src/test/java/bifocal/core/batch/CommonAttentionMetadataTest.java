package bifocal.core.batch;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CommonAttentionMetadataTest {
  private static final AttentionMask IMAGES = AttentionMask.CAUSAL.withImages(ImageMask.OVERRIDE);

  @Test
  void queriesAreTheLastPositionsOfTheirSequence() {
    CommonAttentionMetadata batch = Batches.of(new int[] {1, 5, 3}, new int[] {20, 5, 9}).build();
    assertThat(batch.requests()).isEqualTo(3);
    assertThat(batch.tokens()).isEqualTo(9);
    assertThat(batch.queryStart(1)).isEqualTo(1);
    assertThat(batch.queryLen(1)).isEqualTo(5);
    assertThat(batch.firstPosition(0)).isEqualTo(19);
    assertThat(batch.firstPosition(1)).isZero();
    assertThat(batch.firstPosition(2)).isEqualTo(6);
    assertThat(batch.maxQueryLen()).isEqualTo(5);
    assertThat(batch.maxSeqLen()).isEqualTo(20);
    assertThat(batch.blockTableRow(2)).isEqualTo(2);
    assertThat(batch.isEmpty()).isFalse();
  }

  @Test
  void leftoversInPaddedRowsAreNotReadWhateverTheyHold() {
    int[][] rubbish = {{0, Integer.MAX_VALUE}, {9, 3}, {-5, 700}};
    CommonAttentionMetadata poisoned =
        CommonAttentionMetadata.builder(
                new int[] {0, 1, 2, 3, 4, 5, -900, Integer.MAX_VALUE, 12},
                new int[] {40, 41, 42, 43, 44, Integer.MAX_VALUE, -1, 1 << 30},
                Batches.table(8, 4),
                Batches.slots(5))
            .live(5)
            .images(
                ImageRanges.of(
                    new int[][] {{}, {}, {3, 9}, {}, {}, rubbish[0], rubbish[1], rubbish[2]}, 8))
            .prefilling(new boolean[] {false, false, false, false, false, true, true, true})
            .build();
    CommonAttentionMetadata clean =
        CommonAttentionMetadata.builder(
                new int[] {0, 1, 2, 3, 4, 5, 5, 5, 5},
                new int[] {40, 41, 42, 43, 44, 0, 0, 0},
                Batches.table(8, 4),
                Batches.slots(5))
            .live(5)
            .images(ImageRanges.of(new int[][] {{}, {}, {3, 9}, {}, {}}, 5))
            .prefilling(new boolean[5])
            .build();
    assertThat(poisoned.tokens()).isEqualTo(clean.tokens()).isEqualTo(5);
    assertThat(poisoned.maxQueryLen()).isEqualTo(clean.maxQueryLen()).isEqualTo(1);
    assertThat(poisoned.maxSeqLen()).isEqualTo(clean.maxSeqLen()).isEqualTo(44);
    for (int r = 0; r < 8; r++) {
      assertThat(poisoned.queryLen(r)).isEqualTo(clean.queryLen(r));
      assertThat(poisoned.seqLen(r)).isEqualTo(clean.seqLen(r));
    }
    assertThatCode(() -> poisoned.requireWholeImages(IMAGES)).doesNotThrowAnyException();
    assertThat(DecodePrefillSplit.of(poisoned, DecodePrefillSplit.Rule.upTo(1)))
        .isEqualTo(DecodePrefillSplit.of(clean, DecodePrefillSplit.Rule.upTo(1)));
    assertThat(CacheBounds.of(poisoned, 16)).isEqualTo(CacheBounds.of(clean, 16));
  }

  @Test
  void aBatchOfPaddingAloneIsEmpty() {
    CommonAttentionMetadata batch = Batches.of(new int[] {4, 4}, new int[] {4, 4}).live(0).build();
    assertThat(batch.isEmpty()).isTrue();
    assertThat(batch.tokens()).isZero();
    assertThat(batch.requests()).isEqualTo(2);
  }

  @ParameterizedTest
  @CsvSource({
    "0 5 3, 9 9, QUERY_START_INVALID, request 1",
    "0 5 6, 4 9, QUERY_EXCEEDS_SEQ, request 0",
    "0 5 6, 5 -1, NEGATIVE, request 1",
    "-1 5 6, 9 9, NEGATIVE, request 0",
    "0 5, 9 9, SHAPE_MISMATCH, query_start_loc"
  })
  void aLiveRequestThatCannotBeIsRefusedByName(
      String starts, String seqLens, ErrorCode code, String named) {
    assertRefused(
            code,
            () ->
                CommonAttentionMetadata.builder(
                        numbers(starts), numbers(seqLens), Batches.table(2, 1), Batches.slots(6))
                    .build())
        .contains(named);
  }

  @Test
  void lengthsBeyondAnIntAreRefused() {
    assertRefused(
        ErrorCode.NEGATIVE,
        () ->
            CommonAttentionMetadata.builder(
                    new int[] {Integer.MIN_VALUE, Integer.MAX_VALUE},
                    new int[] {Integer.MAX_VALUE},
                    Batches.table(1, 1),
                    Batches.slots(0))
                .build());
  }

  @Test
  void moreLiveRequestsThanRequestsAreRefused() {
    assertRefused(
        ErrorCode.LIVE_EXCEEDS_REQUESTS,
        () -> Batches.of(new int[] {1}, new int[] {1}).live(2).build());
    assertRefused(
        ErrorCode.NEGATIVE, () -> Batches.of(new int[] {1}, new int[] {1}).live(-1).build());
  }

  @Test
  void tablesOfAnotherTypeOrWithTooFewRowsAreRefused() {
    TensorView longs = TensorView.ofHost(MemorySegment.ofArray(new long[4]), DType.INT64, 2, 2);
    assertRefused(
        ErrorCode.DTYPE_MISMATCH,
        () ->
            CommonAttentionMetadata.builder(
                    new int[] {0, 1}, new int[] {1}, longs, Batches.slots(1))
                .build());
    assertRefused(
        ErrorCode.SHAPE_MISMATCH,
        () ->
            CommonAttentionMetadata.builder(
                    new int[] {0, 1, 2}, new int[] {1, 1}, Batches.table(1, 1), Batches.slots(2))
                .build());
    assertRefused(
        ErrorCode.DTYPE_MISMATCH,
        () ->
            new SlotMapping(TensorView.ofHost(MemorySegment.ofArray(new int[2]), DType.INT32, 2)));
    assertRefused(
        ErrorCode.SHAPE_MISMATCH,
        () -> Batches.of(new int[] {1, 1}, new int[] {1, 1}).prefilling(new boolean[1]).build());
  }

  @Test
  void queriesMayOutnumberKeysOfAnotherSequence() {
    CommonAttentionMetadata batch =
        Batches.of(new int[] {7}, new int[] {3}).independentKeys().build();
    assertThat(batch.queryLen(0)).isEqualTo(7);
    assertThat(batch.seqLen(0)).isEqualTo(3);
    assertThat(batch.independentKeys()).isTrue();
  }

  @ParameterizedTest
  @CsvSource({
    "256, 256, 100 355, IMAGE_CUT",
    "1, 101, 100 355, IMAGE_CUT",
    "1, 20, 9 3, IMAGE_REVERSED",
    "1, 20, -1 3, NEGATIVE",
    "1, 20, 0 5 5 9, IMAGE_OVERLAP",
    "1, 20, 40 50 45 60, IMAGE_OVERLAP"
  })
  void anImageThatIsCutOrIllFormedIsRefused(
      int queryLen, int seqLen, String image, ErrorCode code) {
    CommonAttentionMetadata batch = withImages(queryLen, seqLen, image);
    assertRefused(code, () -> batch.requireWholeImages(IMAGES)).contains("request 0");
    assertThatCode(() -> batch.requireWholeImages(AttentionMask.CAUSAL))
        .as("a mask without images looks at none")
        .doesNotThrowAnyException();
  }

  @ParameterizedTest
  @CsvSource({
    "256, 356, 100 355",
    "100, 100, 100 355",
    "35, 300, 10 265",
    "0, 200, 100 355",
    "1, 20, 0 4 5 9"
  })
  void aWholeImageAFutureOneAndOneWithoutQueriesAreFine(int queryLen, int seqLen, String image) {
    CommonAttentionMetadata batch = withImages(queryLen, seqLen, image);
    assertThatCode(() -> batch.requireWholeImages(IMAGES)).doesNotThrowAnyException();
  }

  @Test
  void aGroupWithoutImageMaskSeesTheSameBatchWithoutImages() {
    CommonAttentionMetadata batch = withImages(5, 20, "2 6");
    CommonAttentionMetadata text = batch.withoutImages();
    assertThat(text.images().isEmpty()).isTrue();
    assertThat(text.queryLen(0)).isEqualTo(5);
    assertThat(text.withoutImages()).isSameAs(text);
    assertThat(batch.images().count(0)).isEqualTo(1);
  }

  @Test
  void aPartKeepsThePlacesOfItsRequests() {
    CommonAttentionMetadata batch =
        Batches.of(new int[] {2, 3, 4}, new int[] {10, 20, 30})
            .images(ImageRanges.of(new int[][] {{0, 3}, {}, {5, 9}}, 3))
            .prefilling(new boolean[] {true, false, true})
            .build();
    CommonAttentionMetadata part = batch.cut(2).request(2).request(0).withImages();
    assertThat(part.live()).isEqualTo(2);
    assertThat(part.queryStart(0)).isEqualTo(5);
    assertThat(part.queryLen(0)).isEqualTo(4);
    assertThat(part.seqLen(0)).isEqualTo(30);
    assertThat(part.blockTableRow(0)).isEqualTo(2);
    assertThat(part.blockTableRow(1)).isZero();
    assertThat(part.images().first(0, 0)).isEqualTo(5);
    assertThat(part.images().last(1, 0)).isEqualTo(3);
    assertThat(part.tokens()).isEqualTo(9);
    assertThat(part.prefilling(0)).isTrue();
    assertThat(part.slots()).isSameAs(batch.slots());
  }

  @Test
  void aRunIsARequestWithItsOwnKeysAndFuture() {
    CommonAttentionMetadata batch = Batches.of(new int[] {2, 6}, new int[] {9, 20}).build();
    CommonAttentionMetadata runs =
        batch.cut(3).run(1, 14, 16, 0).run(1, 17, 19, -1).request(0).withoutImages();
    assertThat(runs.queryStart(0)).isEqualTo(2);
    assertThat(runs.queryLen(0)).isEqualTo(3);
    assertThat(runs.seqLen(0)).isEqualTo(17);
    assertThat(runs.queryStart(1)).isEqualTo(5);
    assertThat(runs.seqLen(1)).isEqualTo(20);
    assertThat(runs.blockTableRow(1)).isEqualTo(1);
    assertThat(runs.hasRuns()).isTrue();
    assertThat(runs.rightWindow(0, AttentionMask.BIDIRECTIONAL)).isZero();
    assertThat(runs.rightWindow(1, AttentionMask.CAUSAL)).isEqualTo(-1);
    assertThat(runs.rightWindow(2, AttentionMask.CAUSAL)).isZero();
    assertThat(runs.rightWindow(2, AttentionMask.BIDIRECTIONAL)).isEqualTo(-1);
    CommonAttentionMetadata again = runs.cut(1).request(1).withoutImages();
    assertThat(again.rightWindow(0, AttentionMask.CAUSAL)).isEqualTo(-1);
  }

  private static CommonAttentionMetadata withImages(int queryLen, int seqLen, String image) {
    return Batches.of(new int[] {queryLen}, new int[] {seqLen})
        .images(ImageRanges.of(new int[][] {numbers(image)}, 1))
        .build();
  }

  private static int[] numbers(String text) {
    return Arrays.stream(text.split(" ")).mapToInt(Integer::parseInt).toArray();
  }
}
