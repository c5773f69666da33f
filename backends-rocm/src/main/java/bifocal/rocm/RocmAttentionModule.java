package bifocal.rocm;

import bifocal.composite.guice.AttentionBinder;
import bifocal.composite.guice.PlatformModule;
import bifocal.core.device.Platform;
import bifocal.rocm.select.RocmBackends;
import com.google.inject.AbstractModule;

/** The backends of AMD devices, and how the platform chooses. */
public final class RocmAttentionModule extends AbstractModule implements PlatformModule {
  @Override
  public Platform platform() {
    return Platform.ROCM;
  }

  @Override
  protected void configure() {
    RocmBackends.all()
        .forEach(
            backend ->
                AttentionBinder.backends(binder()).addBinding(backend.name()).toInstance(backend));
    AttentionBinder.platforms(binder()).addBinding().toInstance(RocmBackends.policy());
  }
}
