package bifocal.cli.select;

import bifocal.composite.guice.BifocalInjector;
import bifocal.composite.guice.PlatformModules;
import bifocal.core.select.Selector;

/** The backends and policies of every platform on the class path. */
final class Backends {
  private Backends() {}

  /** A selector over all of them. */
  static Selector present() {
    return BifocalInjector.create(PlatformModules.detect().present()).getInstance(Selector.class);
  }
}
