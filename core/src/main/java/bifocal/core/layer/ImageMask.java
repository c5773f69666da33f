package bifocal.core.layer;

import java.util.Locale;

/**
 * How the two-way visibility inside an image joins the causal mask {@code C} and the past window
 * {@code P}; {@code B} is "query and key are in the same image".
 */
public enum ImageMask {
  /** Images are causal like text: {@code C and P}. */
  NONE,
  /** {@code (C and P) or B}: an image sees all of itself, however long. */
  OVERRIDE,
  /** {@code P and (C or B)}: the window bounds the past of images too, not their future. */
  CLAMP_PAST,
  /** {@code P and F and (C or B)}: the window bounds past and future ({@code F}). */
  CLAMP_BOTH;

  private final String label = name().toLowerCase(Locale.ROOT);

  /** Name as users write it, for instance {@code clamp_past}. */
  public String label() {
    return label;
  }

  @Override
  public String toString() {
    return label;
  }
}
