package bifocal.cuda;

import bifocal.composite.guice.AttentionBinder;
import bifocal.composite.guice.PlatformModule;
import bifocal.core.device.Platform;
import bifocal.core.host.HostCheck;
import bifocal.cuda.host.CudaHostCheck;
import bifocal.cuda.select.CudaBackends;
import com.google.inject.AbstractModule;
import io.vavr.control.Option;

/** The backends of NVIDIA devices, their composites, and how the platform chooses. */
public final class CudaAttentionModule extends AbstractModule implements PlatformModule {
  @Override
  public Platform platform() {
    return Platform.CUDA;
  }

  @Override
  public Option<HostCheck> hostCheck() {
    return Option.some(CudaHostCheck.ofThisHost());
  }

  @Override
  protected void configure() {
    CudaBackends.all()
        .forEach(
            backend ->
                AttentionBinder.backends(binder()).addBinding(backend.name()).toInstance(backend));
    AttentionBinder.platforms(binder()).addBinding().toInstance(CudaBackends.policy());
    CudaBackends.bindComposites(AttentionBinder.composites(binder()));
  }
}
