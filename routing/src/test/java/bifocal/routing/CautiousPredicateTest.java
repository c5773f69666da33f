package bifocal.routing;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The routing predicate of the reference, row by row. It asks for child A whenever a query might
 * see more than causally; ours asks only when one does. Where the two part, ours is listed with the
 * window that decides.
 *
 * <p>Columns: queries, keys, image; what the predicate says for a clamped and for an overriding
 * image (A or B); what we say for {@code CLAMP_PAST} and {@code OVERRIDE} with a window of 4, and
 * for {@code OVERRIDE} with a window of 1024; CUT where we refuse the step.
 */
class CautiousPredicateTest {

  @ParameterizedTest
  @CsvSource({
    "16, 32, 20, 28,  A, A,  A, A, A",
    "16, 32,  0, 16,  B, A,  B, A, B",
    "16, 32,  0, 17,  A, A,  A, A, A",
    "16, 32, 32, 40,  B, B,  B, B, B",
    "16, 32, 31, 40,  B, A,  CUT, CUT, CUT",
    " 1, 24, 20, 28,  B, A,  CUT, CUT, CUT",
    " 0, 24, 20, 28,  B, B,  B, B, B",
    "16, 32, 20, 20,  B, B,  B, B, B",
    "16, 64, 20, 28,  B, B,  B, B, B",
    "16, 32, 15, 15,  B, B,  B, B, B",
    "16, 32, 16, 17,  A, A,  A, A, A",
    "16, 32, 30, 31,  A, A,  A, A, A",
    " 1, 24,  0, 22,  B, B,  B, B, B",
    " 1, 24,  0, 23,  B, A,  B, A, B",
    " 2, 24, 22, 23,  A, A,  A, A, A",
    " 2, 24, 23, 30,  B, A,  CUT, CUT, CUT",
  })
  void isNeverUndercutAndOftenTightened(
      int queryLen,
      int seqLen,
      int first,
      int last,
      String cautiousClamped,
      String cautiousOverride,
      String clamped,
      String override,
      String overrideWideWindow) {
    Batch batch = Batch.of(queryLen, seqLen, first, last);

    assertThat(route(ImageMask.CLAMP_PAST, 4, batch)).isEqualTo(clamped);
    assertThat(route(ImageMask.OVERRIDE, 4, batch)).isEqualTo(override);
    assertThat(route(ImageMask.OVERRIDE, 1024, batch)).isEqualTo(overrideWideWindow);
    // Whatever needs child A here, the cautious predicate sends there too.
    assertThat(clamped.equals("A") && cautiousClamped.equals("B")).isFalse();
    assertThat(override.equals("A") && cautiousOverride.equals("B")).isFalse();
  }

  @ParameterizedTest
  @CsvSource({"16, 32", "1, 24", "0, 24"})
  void agreesWithoutImages(int queryLen, int seqLen) {
    assertThat(route(ImageMask.OVERRIDE, 4, Batch.of(queryLen, seqLen))).isEqualTo("B");
  }

  private static String route(ImageMask mode, int window, Batch batch) {
    AttentionMask mask = AttentionMask.CAUSAL.withImages(mode).withWindow(window);
    try {
      return new MMPrefixAttentionRouting().route(Batch.layers(mask), batch.metadata()).label();
    } catch (BifocalException refusal) {
      assertThat(refusal.code()).isEqualTo(ErrorCode.IMAGE_CUT);
      return "CUT";
    }
  }
}
