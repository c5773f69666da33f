package bifocal.reference;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import io.vavr.control.Option;
import org.junit.jupiter.api.Test;

/** Each part of the mask, on keys counted by hand. */
class RequestMaskTest {
  private static final AttentionMask CAUSAL = AttentionMask.CAUSAL;
  private static final AttentionMask WINDOW_4 = CAUSAL.withWindow(4);

  @Test
  void causalQuerySeesItselfAndWhatCameBefore() {
    assertThat(row(CAUSAL, Batches.of(3, 6).build(), 4)).isEqualTo("11111.");
  }

  @Test
  void windowCountsTheQueryItself() {
    assertThat(row(WINDOW_4, Batches.of(2, 8).build(), 6)).isEqualTo("...1111.");
  }

  @Test
  void windowOfOneSeesOnlyItself() {
    assertThat(row(CAUSAL.withWindow(1), Batches.of(2, 4).build(), 2)).isEqualTo("..1.");
  }

  @Test
  void bidirectionalSeesEverything() {
    assertThat(row(AttentionMask.BIDIRECTIONAL, Batches.of(5, 5).build(), 1)).isEqualTo("11111");
  }

  @Test
  void nonCausalWindowBoundsBothSides() {
    assertThat(row(AttentionMask.BIDIRECTIONAL.withWindow(3), Batches.of(9, 9).build(), 4))
        .isEqualTo("..11111..");
  }

  @Test
  void chunkedLocalSeesOnlyItsChunk() {
    AttentionMask chunked = new AttentionMask(true, Option.none(), ImageMask.NONE, Option.some(4));
    assertThat(row(chunked, Batches.of(8, 8).build(), 3)).isEqualTo("1111....");
    assertThat(row(chunked, Batches.of(8, 8).build(), 4)).isEqualTo("....1...");
    assertThat(row(chunked, Batches.of(8, 8).build(), 6)).isEqualTo("....111.");
  }

  @Test
  void imageModesDifferWhereTheImageIsLongerThanTheWindow() {
    // Text 0-4, image 5-11, text 12; window 4.
    assertThat(row(WINDOW_4.withImages(ImageMask.OVERRIDE), sevenTokenImage(), 5))
        .isEqualTo("..1111111111.");
    assertThat(row(WINDOW_4.withImages(ImageMask.OVERRIDE), sevenTokenImage(), 11))
        .isEqualTo(".....1111111.");
    assertThat(row(WINDOW_4.withImages(ImageMask.CLAMP_PAST), sevenTokenImage(), 5))
        .isEqualTo("..1111111111.");
    assertThat(row(WINDOW_4.withImages(ImageMask.CLAMP_PAST), sevenTokenImage(), 11))
        .isEqualTo("........1111.");
    assertThat(row(WINDOW_4.withImages(ImageMask.CLAMP_BOTH), sevenTokenImage(), 5))
        .isEqualTo("..1111111....");
    assertThat(row(WINDOW_4.withImages(ImageMask.CLAMP_BOTH), sevenTokenImage(), 8))
        .isEqualTo(".....1111111.");
    assertThat(row(WINDOW_4, sevenTokenImage(), 5)).isEqualTo("..1111.......");
  }

  @Test
  void textNeverSeesIntoTheFuture() {
    AttentionMask mask = CAUSAL.withImages(ImageMask.OVERRIDE);
    assertThat(row(mask, sevenTokenImage(), 4)).isEqualTo("11111........");
    assertThat(row(mask, sevenTokenImage(), 12)).isEqualTo("1111111111111");
  }

  @Test
  void imagesThatTouchStayApart() {
    CommonAttentionMetadata batch =
        Batches.of(6, 6).images(ImageRanges.of(new int[][] {{3, 5, 0, 2}}, 1)).build();
    AttentionMask mask = CAUSAL.withImages(ImageMask.OVERRIDE);
    assertThat(row(mask, batch, 0)).isEqualTo("111...");
    assertThat(row(mask, batch, 3)).isEqualTo("111111");
    assertThat(row(WINDOW_4.withImages(ImageMask.CLAMP_BOTH), batch, 3)).isEqualTo("111111");
    assertThat(row(CAUSAL.withWindow(1).withImages(ImageMask.OVERRIDE), batch, 4))
        .isEqualTo("...111");
  }

  @Test
  void sixTokenImageUnderAWindowOfFour() {
    CommonAttentionMetadata batch =
        Batches.of(6, 6).images(ImageRanges.of(new int[][] {{0, 5}}, 1)).build();
    assertThat(row(WINDOW_4.withImages(ImageMask.CLAMP_PAST), batch, 0)).isEqualTo("111111");
    assertThat(row(WINDOW_4.withImages(ImageMask.CLAMP_BOTH), batch, 0)).isEqualTo("1111..");
    assertThat(row(WINDOW_4.withImages(ImageMask.CLAMP_PAST), batch, 5)).isEqualTo("..1111");
    assertThat(row(WINDOW_4.withImages(ImageMask.CLAMP_BOTH), batch, 5)).isEqualTo("..1111");
    assertThat(row(WINDOW_4.withImages(ImageMask.OVERRIDE), batch, 5)).isEqualTo("111111");
  }

  @Test
  void imageIsFoundByAbsolutePositionInsideAChunk() {
    CommonAttentionMetadata batch =
        Batches.of(2, 6).images(ImageRanges.of(new int[][] {{3, 5}}, 1)).build();
    assertThat(row(CAUSAL.withImages(ImageMask.OVERRIDE), batch, 4)).isEqualTo("111111");
  }

  @Test
  void runCutOutOfARequestBoundsItsOwnFuture() {
    CommonAttentionMetadata whole = Batches.of(10, 10).build();
    CommonAttentionMetadata unlimited = whole.cut(1).run(0, 2, 6, -1).withoutImages();
    assertThat(row(WINDOW_4, unlimited, 2)).isEqualTo("1111111");
    assertThat(row(WINDOW_4, unlimited, 6)).isEqualTo("...1111");
    CommonAttentionMetadata bounded = whole.cut(1).run(0, 2, 6, 1).withoutImages();
    assertThat(row(WINDOW_4, bounded, 4)).isEqualTo(".11111.");
  }

  @Test
  void independentKeysAreAlignedAtTheirEnd() {
    CommonAttentionMetadata batch = Batches.of(4, 2).independentKeys().build();
    assertThat(batch.firstPosition(0)).isEqualTo(-2);
    assertThat(row(AttentionMask.BIDIRECTIONAL, batch, -2)).isEqualTo("11");
    assertThat(row(CAUSAL, batch, -2)).isEqualTo("..");
    assertThat(row(CAUSAL, batch, 0)).isEqualTo("1.");
  }

  @Test
  void keysThatDoNotExistAreNotSeen() {
    RequestMask mask = RequestMask.of(Batches.of(1, 3).build(), 0, AttentionMask.BIDIRECTIONAL);
    assertThat(mask.sees(2, 3)).isFalse();
    assertThat(mask.sees(2, -1)).isFalse();
  }

  private static CommonAttentionMetadata sevenTokenImage() {
    return Batches.of(13, 13).images(ImageRanges.of(new int[][] {{5, 11}}, 1)).build();
  }

  private static String row(AttentionMask mask, CommonAttentionMetadata batch, int query) {
    RequestMask request = RequestMask.of(batch, 0, mask);
    StringBuilder keys = new StringBuilder();
    for (int key = 0; key < batch.seqLen(0); key++) {
      keys.append(request.sees(query, key) ? '1' : '.');
    }
    return keys.toString();
  }
}
