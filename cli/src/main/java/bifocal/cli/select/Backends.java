package bifocal.cli.select;

import bifocal.cli.command.Console;
import bifocal.composite.guice.BifocalInjector;
import bifocal.composite.guice.PlatformModules;
import bifocal.core.select.Selector;
import bifocal.core.select.UnreadVariables;

/** The backends and policies of every platform on the class path. */
final class Backends {
  private Backends() {}

  /** A selector over all of them, and a word on what the environment says in vain. */
  static Selector present(Console console) {
    UnreadVariables.remarks(console.environment())
        .forEach(remark -> console.err().println("bifocal: " + remark));
    return present();
  }

  /** A selector over all of them. */
  static Selector present() {
    return BifocalInjector.create(PlatformModules.detect().present()).getInstance(Selector.class);
  }
}
