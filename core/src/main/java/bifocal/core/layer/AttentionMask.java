package bifocal.core.layer;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.control.Option;

/**
 * The mask a layer declares. It is data, the same for every backend, never a kernel's choice.
 *
 * @param causal whether a query sees no later key (images excepted, see {@code images})
 * @param window sliding window {@code W}: a query sees itself and the {@code W - 1} keys before it,
 *     and, when not causal, the {@code W - 1} keys after it; absent means unlimited
 * @param images how images join the mask
 * @param chunk chunked-local attention: a query sees only keys of its own chunk of this many
 *     positions; absent means off
 */
public record AttentionMask(
    boolean causal, Option<Integer> window, ImageMask images, Option<Integer> chunk) {

  /** Plain causal attention. */
  public static final AttentionMask CAUSAL =
      new AttentionMask(true, Option.none(), ImageMask.NONE, Option.none());

  /** Every query sees every key. */
  public static final AttentionMask BIDIRECTIONAL =
      new AttentionMask(false, Option.none(), ImageMask.NONE, Option.none());

  public AttentionMask {
    window.forEach(w -> requirePositive("sliding window", w));
    chunk.forEach(c -> requirePositive("attention chunk", c));
    if (images != ImageMask.NONE && !causal) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "image mask " + images.label() + " on a layer that is not causal",
          "causal=false",
          "causal=true");
    }
  }

  /** The same mask with a sliding window of {@code w} keys. */
  public AttentionMask withWindow(int w) {
    return new AttentionMask(causal, Option.some(w), images, chunk);
  }

  /** The same mask with images joined in the given way. */
  public AttentionMask withImages(ImageMask mode) {
    return new AttentionMask(causal, window, mode, chunk);
  }

  /** Keys visible before the query, -1 when unlimited. */
  public int leftWindow() {
    return window.isDefined() ? window.get() - 1 : -1;
  }

  /** Keys visible after the query outside images: 0 when causal, -1 when unlimited. */
  public int rightWindow() {
    return causal ? 0 : leftWindow();
  }

  /** Whether images change this mask. */
  public boolean seesImages() {
    return images != ImageMask.NONE;
  }

  private static void requirePositive(String what, int value) {
    if (value < 1) {
      throw BifocalException.of(ErrorCode.INVALID_PARAMETER, what, value, "at least 1");
    }
  }
}
