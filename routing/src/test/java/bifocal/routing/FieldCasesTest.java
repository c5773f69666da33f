package bifocal.routing;

import static bifocal.core.layer.ImageMask.CLAMP_BOTH;
import static bifocal.core.layer.ImageMask.CLAMP_PAST;
import static bifocal.core.layer.ImageMask.NONE;
import static bifocal.core.layer.ImageMask.OVERRIDE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.route.Child;
import bifocal.core.route.Route;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Batches that routers of comparable systems got wrong in the field. */
class FieldCasesTest {

  private static Route route(AttentionMask mask, Batch batch) {
    return new MMPrefixAttentionRouting().route(Batch.layers(mask), batch.metadata());
  }

  private static AttentionMask mask(ImageMask mode, int window) {
    return AttentionMask.CAUSAL.withImages(mode).withWindow(window);
  }

  /** C03: an image that lies in the past diverts no later step. */
  @Nested
  class PastImage {
    @ParameterizedTest
    @CsvSource({
      "1, 1024, OVERRIDE, B",
      "1, 1024, CLAMP_PAST, B",
      "1, 1024, CLAMP_BOTH, B",
      "3, 64, OVERRIDE, B",
      "35, 1024, OVERRIDE, B",
      "35, 1024, CLAMP_PAST, B",
      "35, 1024, CLAMP_BOTH, B",
      "40, 1024, OVERRIDE, A",
      "40, 1024, CLAMP_PAST, A",
      "40, 1024, CLAMP_BOTH, A",
      // Neighbours: without a query in the image, its last query alone, and one more.
      "34, 64, OVERRIDE, B",
      "35, 64, OVERRIDE, A",
      "35, 256, OVERRIDE, B",
      "35, 255, OVERRIDE, A",
      "35, 64, CLAMP_PAST, B",
      "35, 64, CLAMP_BOTH, B",
      "36, 64, CLAMP_PAST, A",
      "36, 1, CLAMP_PAST, A",
      "36, 1, CLAMP_BOTH, B"
    })
    void isLeftToItself(int queryLen, int window, ImageMask mode, String child) {
      assertThat(route(mask(mode, window), Batch.of(queryLen, 300, 10, 265)).label())
          .isEqualTo(child);
    }

    @Test
    void decodesAreLeftAloneTogetherToo() {
      List<Batch.Request> decodes =
          Collections.nCopies(32, new Batch.Request(1, 300, new int[] {10, 265}));

      assertThat(route(mask(OVERRIDE, 64), new Batch(32, decodes)).label()).isEqualTo("B");
    }
  }

  /** C04: a clamped and an overriding image differ at the image's last query. */
  @Nested
  class ImageTail {
    @ParameterizedTest
    @CsvSource({
      "5, CLAMP_PAST, A", "5, CLAMP_BOTH, A", "5, OVERRIDE, A",
      "4, CLAMP_PAST, B", "4, CLAMP_BOTH, B", "4, OVERRIDE, A",
      "3, CLAMP_PAST, B", "3, CLAMP_BOTH, B", "3, OVERRIDE, B"
    })
    void differsByMask(int queryLen, ImageMask mode, String child) {
      assertThat(route(mask(mode, 4), Batch.of(queryLen, 12, 0, 8)).label()).isEqualTo(child);
    }

    /** An image of nine tokens fits into a window of nine, and not into one of eight. */
    @ParameterizedTest
    @CsvSource({
      "9, OVERRIDE, B",
      "8, OVERRIDE, A",
      "9, CLAMP_PAST, B",
      "8, CLAMP_PAST, B",
      "1, CLAMP_PAST, B",
      "1, OVERRIDE, A"
    })
    void differsOnlyForAnImageLongerThanTheWindow(int window, ImageMask mode, String child) {
      assertThat(route(mask(mode, window), Batch.of(4, 12, 0, 8)).label()).isEqualTo(child);
    }

    @Test
    void reasonNamesQueryAndKey() {
      assertThat(route(mask(CLAMP_PAST, 4), Batch.of(5, 12, 0, 8)).requests().text(0))
          .isEqualTo("query 7 needs key 8");
      assertThat(route(mask(OVERRIDE, 4), Batch.of(4, 12, 0, 8)).requests().text(0))
          .isEqualTo("query 8 needs key 0 behind the window");
    }
  }

  /** C05: a chunk that ends inside an image. */
  @Nested
  class CutImage {
    @ParameterizedTest
    @EnumSource(value = ImageMask.class, names = "NONE", mode = EnumSource.Mode.EXCLUDE)
    void isRefused(ImageMask mode) {
      assertThatThrownBy(() -> route(mask(mode, 1024), Batch.of(256, 256, 100, 355)))
          .isInstanceOfSatisfying(
              BifocalException.class,
              refusal -> {
                assertThat(refusal.code()).isEqualTo(ErrorCode.IMAGE_CUT);
                assertThat(refusal.request()).containsExactly(0);
              });
    }

    @Test
    void isNoMatterWhenImagesAreCausal() {
      assertThat(route(mask(NONE, 1024), Batch.of(256, 256, 100, 355)).label()).isEqualTo("B");
    }

    @Test
    void wholeInTheNextChunkItGoesToTheGeneralChild() {
      assertThat(route(mask(CLAMP_PAST, 1024), Batch.of(100, 100, 100, 355)).label())
          .isEqualTo("B");
      assertThat(route(mask(CLAMP_PAST, 1024), Batch.of(256, 356, 100, 355)).label())
          .isEqualTo("A");
    }

    @Test
    void isRefusedEvenWhereRoutingWouldSeeNoDifference() {
      assertThatThrownBy(() -> route(mask(CLAMP_PAST, 4), Batch.of(1, 101, 100, 355)))
          .hasMessageContaining("image [100,355] with keys up to 100");
    }

    /** Keys up to the image's first token, up to the last but one, and a cut second image. */
    @ParameterizedTest
    @CsvSource({"1, 101", "101, 101", "256, 355", "1, 355"})
    void isRefusedWhereverItIsCut(int queryLen, int seqLen) {
      assertThatThrownBy(() -> route(mask(OVERRIDE, 1024), Batch.of(queryLen, seqLen, 100, 355)))
          .isInstanceOfSatisfying(
              BifocalException.class,
              refusal -> assertThat(refusal.code()).isEqualTo(ErrorCode.IMAGE_CUT));
      assertThatThrownBy(
              () -> route(mask(OVERRIDE, 1024), Batch.of(queryLen, seqLen, 0, 9, 100, 355)))
          .isInstanceOf(BifocalException.class);
    }

    /** The chunk ends before the image, at its end, or begins inside it, which a cache hit does. */
    @ParameterizedTest
    @CsvSource({"100, 100, B", "256, 356, A", "300, 400, A", "200, 356, A", "1, 356, B"})
    void wholeImagesAreNotCut(int queryLen, int seqLen, String child) {
      assertThat(route(mask(CLAMP_PAST, 1024), Batch.of(queryLen, seqLen, 100, 355)).label())
          .isEqualTo(child);
    }

    @Test
    void cutBySomebodyWithoutQueriesIsNotCut() {
      assertThat(route(mask(CLAMP_PAST, 4), Batch.of(0, 101, 100, 355)).label()).isEqualTo("B");
    }
  }

  /** C06: an image longer than the window keeps its mask. */
  @Nested
  class LongImage {
    @ParameterizedTest
    @CsvSource({"6, 5, 4", "1100, 1099, 1024", "5, 4, 4", "1025, 1024, 1024", "2200, 1099, 1024"})
    void goesToTheGeneralChild(int queryLen, int last, int window) {
      for (ImageMask mode : List.of(OVERRIDE, CLAMP_PAST, CLAMP_BOTH)) {
        Route route = route(mask(mode, window), Batch.of(queryLen, queryLen, 0, last));

        assertThat(route.label()).isEqualTo("A");
        assertThat(route.requests().text(0)).isEqualTo("query 0 needs key 1");
      }
    }
  }

  /** C07: what padded rows hold from an earlier step. */
  @Nested
  class PaddedRows {
    private static final List<Batch.Request> DECODES =
        Collections.nCopies(5, new Batch.Request(1, 300, new int[] {10, 265}));

    @ParameterizedTest
    @EnumSource(ImageMask.class)
    void decideNothing(ImageMask mode) {
      List<Batch.Request> poisoned = new ArrayList<>(DECODES);
      poisoned.add(new Batch.Request(400, 400, 0, 399));
      poisoned.add(new Batch.Request(Integer.MAX_VALUE, -7, 9, 3, -4, 8));
      poisoned.add(new Batch.Request(-1, Integer.MAX_VALUE, 0, Integer.MAX_VALUE));

      Route route = route(mask(mode, 64), new Batch(5, poisoned));

      assertThat(route).isEqualTo(route(mask(mode, 64), new Batch(5, DECODES)));
      assertThat(route.label()).isEqualTo("B");
      assertThat(route.requests().count(Child.B)).isEqualTo(5);
    }

    /** Whatever the policy does with images. */
    @Test
    void decideNothingWholeOrLowered() {
      List<Batch.Request> poisoned = new ArrayList<>(DECODES);
      poisoned.add(new Batch.Request(400, 400, 0, 399));
      poisoned.add(new Batch.Request(Integer.MIN_VALUE, Integer.MIN_VALUE, 1, 0));
      MMPrefixAttentionRouting whole = new MMPrefixAttentionRouting().wholeBatch();
      for (MMPrefixAttentionRouting policy :
          List.of(
              whole,
              whole.withLowering(Lowering.BOTH_WINDOWS),
              new MMPrefixAttentionRouting().withLowering(Lowering.LEFT_WINDOW))) {
        Route route =
            policy.route(Batch.layers(mask(CLAMP_BOTH, 64)), new Batch(5, poisoned).metadata());
        assertThat(route.label()).isEqualTo("B");
        assertThat(route)
            .isEqualTo(
                policy.route(Batch.layers(mask(CLAMP_BOTH, 64)), new Batch(5, DECODES).metadata()));
      }
    }

    @Test
    void werePrefillsInTheStepBefore() {
      List<Batch.Request> before = new ArrayList<>(DECODES);
      before.addAll(Collections.nCopies(3, new Batch.Request(400, 400, 0, 399)));

      assertThat(route(mask(CLAMP_PAST, 64), new Batch(8, before)).label()).isEqualTo("SPLIT");
    }
  }
}
