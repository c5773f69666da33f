package bifocal.core.batch;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.error.ErrorCode;
import org.junit.jupiter.api.Test;

class ImageRangesTest {

  @Test
  void imagesComeInAscendingOrderWhateverTheyWereGivenIn() {
    ImageRanges images = ImageRanges.of(new int[][] {{9, 12, 0, 3, 5, 5}, {}}, 2);
    assertThat(images.count(0)).isEqualTo(3);
    assertThat(images.first(0, 0)).isZero();
    assertThat(images.last(0, 0)).isEqualTo(3);
    assertThat(images.first(0, 1)).isEqualTo(5);
    assertThat(images.first(0, 2)).isEqualTo(9);
    assertThat(images.last(0, 2)).isEqualTo(12);
    assertThat(images.count(1)).isZero();
    assertThat(images).isEqualTo(ImageRanges.of(new int[][] {{0, 3, 5, 5, 9, 12}, {}}, 2));
  }

  @Test
  void imagesBeyondTheLiveRequestsAreNeverLookedAt() {
    ImageRanges images = ImageRanges.of(new int[][] {{0, 3}, {7}, null}, 1);
    assertThat(images.count(0)).isEqualTo(1);
    assertThat(images.count(1)).isZero();
    assertThat(images.count(7)).isZero();
  }

  @Test
  void halfARangeIsRefused() {
    assertRefused(ErrorCode.MALFORMED_INPUT, () -> ImageRanges.of(new int[][] {{}, {1, 2, 3}}, 2))
        .contains("request 1");
  }

  @Test
  void everyLiveRequestHasAnEntry() {
    assertRefused(ErrorCode.SHAPE_MISMATCH, () -> ImageRanges.of(new int[][] {{}}, 2));
    assertRefused(ErrorCode.NEGATIVE, () -> ImageRanges.of(new int[][] {{}}, -1));
  }

  @Test
  void noImagesAreNone() {
    assertThat(ImageRanges.NONE.isEmpty()).isTrue();
    assertThat(ImageRanges.NONE.count(3)).isZero();
    assertThat(ImageRanges.of(new int[][] {{}, {}}, 2).isEmpty()).isTrue();
  }
}
