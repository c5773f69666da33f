package bifocal.xpu;

import bifocal.composite.guice.PlatformModule;
import bifocal.core.device.Platform;
import com.google.inject.AbstractModule;

/** The backends of Intel devices. */
public final class XpuAttentionModule extends AbstractModule implements PlatformModule {
  @Override
  public Platform platform() {
    return Platform.XPU;
  }
}
