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
      "40, 1024, CLAMP_BOTH, A"
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

    @Test
    void cutBySomebodyWithoutQueriesIsNotCut() {
      assertThat(route(mask(CLAMP_PAST, 4), Batch.of(0, 101, 100, 355)).label()).isEqualTo("B");
    }
  }

  /** C06: an image longer than the window keeps its mask. */
  @Nested
  class LongImage {
    @ParameterizedTest
    @CsvSource({"6, 5, 4", "1100, 1099, 1024"})
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

    @Test
    void werePrefillsInTheStepBefore() {
      List<Batch.Request> before = new ArrayList<>(DECODES);
      before.addAll(Collections.nCopies(3, new Batch.Request(400, 400, 0, 399)));

      assertThat(route(mask(CLAMP_PAST, 64), new Batch(8, before)).label()).isEqualTo("SPLIT");
    }
  }
}
