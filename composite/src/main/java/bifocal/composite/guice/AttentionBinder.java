package bifocal.composite.guice;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.route.RoutingPolicy;
import bifocal.core.select.LatentPrefillProvider;
import bifocal.core.select.PlatformPolicy;
import com.google.inject.Binder;
import com.google.inject.TypeLiteral;
import com.google.inject.multibindings.MapBinder;
import com.google.inject.multibindings.Multibinder;

/** How a module, of a platform or of a host, contributes: backends, policies and composites. */
public final class AttentionBinder {
  private AttentionBinder() {}

  /** Binds backends by their names. */
  public static MapBinder<BackendName, AttentionBackend<?>> backends(Binder binder) {
    return MapBinder.newMapBinder(
        binder, TypeLiteral.get(BackendName.class), new TypeLiteral<AttentionBackend<?>>() {});
  }

  /** Binds routing policies by the names users choose them by, for instance {@code mm-prefix}. */
  public static MapBinder<String, RoutingPolicy> policies(Binder binder) {
    return MapBinder.newMapBinder(binder, String.class, RoutingPolicy.class);
  }

  /**
   * Binds backends of latent prefill by name: {@code CUSTOM}, a name of the host's own, or that of
   * a platform's backend whose place one takes.
   */
  public static MapBinder<String, LatentPrefillProvider> latentPrefills(Binder binder) {
    return MapBinder.newMapBinder(binder, String.class, LatentPrefillProvider.class);
  }

  /** Binds how platforms choose among backends. */
  public static Multibinder<PlatformPolicy> platforms(Binder binder) {
    return Multibinder.newSetBinder(binder, PlatformPolicy.class);
  }

  /**
   * Binds composites, each in one sentence:
   *
   * <pre>{@code
   * composites(binder()).bind(NAME).of(GENERAL, FAST).routedBy(MMPrefixAttentionRouting.class)
   *     .onlyOn(capabilityMajor(10)).headSizes(256, 512).kernelBlockSizes(64);
   * }</pre>
   */
  public static CompositeBinder composites(Binder binder) {
    return new CompositeBinder(binder);
  }

  /** CUDA devices of one major compute capability. */
  public static DeviceSupport capabilityMajor(int major) {
    return DeviceSupport.cuda(DeviceSupport.Range.majors(major, major));
  }

  static Multibinder<CompositeBinding> compositeBindings(Binder binder) {
    return Multibinder.newSetBinder(binder, CompositeBinding.class);
  }
}
