package bifocal.cuda;

import bifocal.composite.guice.PlatformModule;
import bifocal.core.device.Platform;
import com.google.inject.AbstractModule;

/** The backends of NVIDIA devices. */
public final class CudaAttentionModule extends AbstractModule implements PlatformModule {
  @Override
  public Platform platform() {
    return Platform.CUDA;
  }
}
