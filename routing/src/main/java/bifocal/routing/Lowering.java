package bifocal.routing;

/** How far a policy may cut image requests into runs for the fast child. */
public enum Lowering {
  /** Not at all. */
  OFF,
  /** Into causal runs, and non-causal runs that the layer's left window bounds. */
  LEFT_WINDOW,
  /**
   * As {@link #LEFT_WINDOW}, and into non-causal runs with a right window too. {@code CLAMP_BOTH}
   * needs them where scheduled queries of an image reach further ahead than the window.
   */
  BOTH_WINDOWS
}
