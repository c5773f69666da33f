package bifocal.cli.backend;

import bifocal.composite.guice.PlatformModule;
import bifocal.composite.guice.PlatformModules;
import bifocal.core.device.Platform;
import bifocal.core.host.Finding;
import bifocal.core.host.HostCheck;
import io.vavr.collection.Seq;

/** What computes on a platform of this host, and on how many threads. */
public final class RunConditions {
  private RunConditions() {}

  /** The findings of the platform's own check that belong into the report of a run. */
  public static Seq<Finding> of(Platform platform) {
    return PlatformModules.detect()
        .present()
        .filter(module -> module.platform() == platform)
        .flatMap(PlatformModule::hostCheck)
        .flatMap(HostCheck::conditions);
  }
}
