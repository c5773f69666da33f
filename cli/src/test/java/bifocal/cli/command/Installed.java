package bifocal.cli.command;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import bifocal.composite.guice.PlatformModule;
import bifocal.composite.guice.PlatformModules;
import bifocal.core.device.Platform;
import io.vavr.collection.Seq;

/** Skips tests of a platform whose module was left out. */
public final class Installed {
  private static final Seq<Platform> PLATFORMS =
      PlatformModules.detect().present().map(PlatformModule::platform);

  private Installed() {}

  /** Skips a test that needs all of these platforms, unless they are there. */
  public static void require(Platform... platforms) {
    for (Platform platform : platforms) {
      assumeTrue(PLATFORMS.contains(platform), platform.label() + " is not installed");
    }
  }
}
