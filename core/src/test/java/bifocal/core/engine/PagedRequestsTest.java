package bifocal.core.engine;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.BatchLimits;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.cache.KvBlocks;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCachePool;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.cache.SequenceKeys;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Vector;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class PagedRequestsTest {
  private static final KvCacheSpec CACHE =
      new KvCacheSpec(KvLayouts.NHD, KvCacheDtype.FLOAT32, 4, 1, 2, 2, KvScales.ONE);

  private final KvCachePool pool =
      KvCachePool.allocate(Vector.of(new KvCachePool.Group("full", Vector.of("layer"), CACHE, 6)));
  private final KvBlocks blocks = pool.group("full");
  private final PagedRequests requests = PagedRequests.allocate(blocks, new BatchLimits(3, 12, 16));

  @AfterEach
  void close() {
    requests.close();
    pool.close();
  }

  @Test
  void aBatchHoldsEachRowsNextTokensBehindThoseItHas() {
    requests.schedule(new int[] {5, 2}, ImageRanges.NONE);
    CommonAttentionMetadata batch = requests.schedule(new int[] {1, 3, 2}, ImageRanges.NONE);

    assertThat(batch.live()).isEqualTo(3);
    assertThat(batch.tokens()).isEqualTo(6);
    assertThat(new int[] {batch.seqLen(0), batch.seqLen(1), batch.seqLen(2)})
        .containsExactly(6, 5, 2);
    assertThat(new int[] {batch.queryStart(0), batch.queryStart(1), batch.queryStart(2)})
        .containsExactly(0, 1, 4);
    assertThat(batch.slots().slots().data().asSlice(0, 48).toArray(ValueLayout.JAVA_LONG))
        .containsExactly(9, 14, 15, 16, 20, 21);
  }

  @Test
  void aRowThatWaitsHoldsNothing() {
    CommonAttentionMetadata batch = requests.schedule(new int[] {3, 0}, ImageRanges.NONE);

    assertThat(batch.queryLen(1)).isZero();
    assertThat(batch.seqLen(1)).isZero();
    assertThat(blocks.free()).isEqualTo(4);
  }

  @Test
  void rowsThatBeginAlikeHoldOneCopyOfTheBeginning() {
    requests.schedule(new int[] {6}, ImageRanges.NONE);
    requests.share(0, 1);
    assertThat(blocks.free()).isEqualTo(3);

    CommonAttentionMetadata batch = requests.schedule(new int[] {1, 1}, ImageRanges.NONE);

    assertThat(blocks.free()).isEqualTo(2);
    assertThat(batch.seqLen(1)).isEqualTo(7);
    assertThat(batch.slots().slots().data().asSlice(0, 16).toArray(ValueLayout.JAVA_LONG))
        .containsExactly(14, 10);
  }

  @Test
  void aRowBeginsWithWhatOthersPublishedOfItsSequence() {
    assertThat(begin(0, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9)).isZero();
    requests.schedule(new int[] {9}, ImageRanges.NONE);
    requests.publish();

    assertThat(begin(1, 16, 1, 2, 3, 4, 5, 6, 7, 8, 90)).isEqualTo(8);
    assertThat(blocks.free()).isEqualTo(2);
    assertThat(begin(2, 7, 1, 2, 3, 4, 5, 6, 7, 8, 90)).isEqualTo(4);
  }

  @Test
  void tokensNamedLaterArePublishedToo() {
    begin(0, 16, 1, 2, 3);
    requests.schedule(new int[] {3}, ImageRanges.NONE);
    requests.append(0, 4);
    requests.schedule(new int[] {1}, ImageRanges.NONE);
    requests.publish();
    requests.release(0);

    assertThat(blocks.known(sequence(1, 2, 3, 4))).isEqualTo(1);
    assertThat(begin(0, 16, 1, 2, 3, 4, 5)).isEqualTo(4);
  }

  @Test
  void theImagesOfItsSequenceStayWithARowUntilItIsReleased() {
    requests.begin(1, new int[3], Vector.of(new SequenceImage(2, 6, "picture")), 16);
    assertThat(requests.images()).isEqualTo(ImageRanges.of(new int[][] {{}, {2, 6}, {}}, 3));

    requests.release(1);
    assertThat(requests.images().isEmpty()).isTrue();
  }

  @Test
  void aSequenceThatMakesNoSenseIsRefused() {
    assertRefused(
        ErrorCode.IMAGE_REVERSED,
        () -> requests.begin(0, new int[3], Vector.of(new SequenceImage(6, 2, "x")), 16));
    assertRefused(ErrorCode.SHAPE_MISMATCH, () -> begin(3, 16, 1));
    assertRefused(ErrorCode.NEGATIVE, () -> begin(0, -1, 1));
    assertThat(blocks.free()).isEqualTo(5);
  }

  @Test
  void rowsWithoutNamesAreNotPublished() {
    requests.schedule(new int[] {8}, ImageRanges.NONE);
    requests.append(0, 1, 2, 3, 4, 5, 6, 7, 8);
    requests.publish();

    assertThat(blocks.known(sequence(1, 2, 3, 4))).isZero();
    assertRefused(ErrorCode.SHAPE_MISMATCH, () -> requests.append(3, 1));
  }

  @Test
  void aBatchThatDoesNotFitChangesNothing() {
    requests.schedule(new int[] {8, 4}, ImageRanges.NONE);

    assertRefused(
        ErrorCode.POOL_EXHAUSTED, () -> requests.schedule(new int[] {1, 4, 4}, ImageRanges.NONE));
    assertRefused(
        ErrorCode.BLOCK_TABLE_TOO_SHORT,
        () -> requests.schedule(new int[] {1, 0, 17}, ImageRanges.NONE));
    assertRefused(
        ErrorCode.MEMORY_TOO_SMALL, () -> requests.schedule(new int[] {1, 3, 9}, ImageRanges.NONE));
    assertRefused(ErrorCode.NEGATIVE, () -> requests.schedule(new int[] {1, -1}, ImageRanges.NONE));
    assertRefused(ErrorCode.SHAPE_MISMATCH, () -> requests.schedule(new int[4], ImageRanges.NONE));

    assertThat(requests.tokens(0)).isEqualTo(8);
    assertThat(requests.tokens(1)).isEqualTo(4);
    assertThat(blocks.free()).isEqualTo(2);
  }

  @Test
  void aRowThatIsReleasedGivesItsBlocksBack() {
    requests.schedule(new int[] {8}, ImageRanges.NONE);
    requests.release(0);

    assertThat(requests.tokens(0)).isZero();
    assertThat(blocks.free()).isEqualTo(5);
  }

  @Test
  void closingGivesEverythingBackOnce() {
    requests.schedule(new int[] {8}, ImageRanges.NONE);
    requests.close();
    requests.close();

    assertThat(blocks.free()).isEqualTo(5);
    assertRefused(ErrorCode.CLOSED, () -> requests.schedule(new int[] {1}, ImageRanges.NONE));
  }

  private int begin(int row, int mostTokens, int... tokens) {
    return requests.begin(row, tokens, Vector.empty(), mostTokens);
  }

  private SequenceKeys sequence(int... tokens) {
    SequenceKeys keys = SequenceKeys.of(blocks);
    keys.append(tokens);
    return keys;
  }
}
