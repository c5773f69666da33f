package bifocal.composite.guice;

import bifocal.core.device.Platform;
import bifocal.core.host.HostCheck;
import com.google.inject.Module;
import io.vavr.control.Option;

/**
 * Binds one platform's backends and composites. A platform's jar names its module as a service of
 * this type, so that whoever puts the jar on the class path has the platform.
 */
public interface PlatformModule extends Module {
  /** Kind of hardware. */
  Platform platform();

  /** What looks for the platform on this host, absent where it is described and never run. */
  default Option<HostCheck> hostCheck() {
    return Option.none();
  }
}
