package bifocal.xpu;

import bifocal.composite.guice.AttentionBinder;
import bifocal.composite.guice.PlatformModule;
import bifocal.core.device.Platform;
import bifocal.xpu.select.XpuPolicy;
import com.google.inject.AbstractModule;

/** How Intel devices choose among the backends that are there. */
public final class XpuAttentionModule extends AbstractModule implements PlatformModule {
  @Override
  public Platform platform() {
    return Platform.XPU;
  }

  @Override
  protected void configure() {
    AttentionBinder.platforms(binder()).addBinding().toInstance(new XpuPolicy());
  }
}
