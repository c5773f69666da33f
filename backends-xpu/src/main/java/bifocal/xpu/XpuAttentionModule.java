package bifocal.xpu;

import bifocal.composite.guice.AttentionBinder;
import bifocal.composite.guice.PlatformModule;
import bifocal.core.device.Platform;
import bifocal.xpu.select.XpuBackends;
import bifocal.xpu.select.XpuPolicy;
import com.google.inject.AbstractModule;

/** The backends of Intel devices, and how the platform chooses among all that are there. */
public final class XpuAttentionModule extends AbstractModule implements PlatformModule {
  @Override
  public Platform platform() {
    return Platform.XPU;
  }

  @Override
  protected void configure() {
    XpuBackends.all()
        .forEach(
            backend ->
                AttentionBinder.backends(binder()).addBinding(backend.name()).toInstance(backend));
    AttentionBinder.platforms(binder()).addBinding().toInstance(new XpuPolicy());
  }
}
