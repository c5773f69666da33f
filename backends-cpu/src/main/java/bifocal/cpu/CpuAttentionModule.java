package bifocal.cpu;

import bifocal.composite.guice.PlatformModule;
import bifocal.core.device.Platform;
import com.google.inject.AbstractModule;

/** The backends of the host processor. */
public final class CpuAttentionModule extends AbstractModule implements PlatformModule {
  @Override
  public Platform platform() {
    return Platform.CPU;
  }
}
