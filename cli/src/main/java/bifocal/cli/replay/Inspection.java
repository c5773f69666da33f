package bifocal.cli.replay;

import io.vavr.control.Option;

/**
 * What is looked at beside a backend's results.
 *
 * @param shadow hears of every batch that a shadow ran too
 * @param capture writes one step
 */
record Inspection(Option<ShadowRecorder> shadow, Option<StepCapture> capture) {
  /** Nothing. */
  static final Inspection NONE = new Inspection(Option.none(), Option.none());
}
