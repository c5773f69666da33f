package bifocal.rocm;

import bifocal.composite.guice.PlatformModule;
import bifocal.core.device.Platform;
import com.google.inject.AbstractModule;

/** The backends of AMD devices. */
public final class RocmAttentionModule extends AbstractModule implements PlatformModule {
  @Override
  public Platform platform() {
    return Platform.ROCM;
  }
}
