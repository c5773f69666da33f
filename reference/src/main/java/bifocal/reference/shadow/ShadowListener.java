package bifocal.reference.shadow;

import bifocal.core.layer.LayerGroup;

/** Hears of every batch that a shadow ran too, on the thread that runs the step. */
public interface ShadowListener {
  /** Both ran. */
  void compared(ShadowComparison comparison);

  /**
   * The shadow could not build or run a batch; the primary ran it all the same, and its output is
   * the result. A listener that wants the step to fail throws.
   */
  void failed(long step, LayerGroup group, RuntimeException failure);
}
