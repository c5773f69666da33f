package bifocal.composite.guice;

import bifocal.core.device.Platform;
import com.google.inject.Module;

/**
 * Binds one platform's backends and composites. A platform's jar names its module as a service of
 * this type, so that whoever puts the jar on the class path has the platform.
 */
public interface PlatformModule extends Module {
  /** Kind of hardware. */
  Platform platform();
}
