package bifocal.composite.guice;

import bifocal.composite.CompositeBackends;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.BackendRegistry;
import bifocal.core.observe.JfrObserver;
import bifocal.core.select.LatentPrefillProvider;
import bifocal.core.select.LatentPrefillRegistry;
import bifocal.core.select.PlatformPolicy;
import bifocal.core.select.Selector;
import bifocal.routing.MMPrefixAttentionRouting;
import bifocal.routing.PrefillDecodeRouting;
import com.google.inject.AbstractModule;
import com.google.inject.Provides;
import jakarta.inject.Singleton;
import java.util.Map;
import java.util.Set;

/** What every injector has: places to bind backends, composites and policies, and our policies. */
public final class AttentionModule extends AbstractModule {
  @Override
  protected void configure() {
    AttentionBinder.backends(binder());
    AttentionBinder.compositeBindings(binder());
    AttentionBinder.platforms(binder());
    AttentionBinder.latentPrefills(binder());
    bind(MMPrefixAttentionRouting.class).toInstance(new MMPrefixAttentionRouting());
    bind(PrefillDecodeRouting.class).toInstance(new PrefillDecodeRouting());
    AttentionBinder.policies(binder()).addBinding("mm-prefix").to(MMPrefixAttentionRouting.class);
    AttentionBinder.policies(binder()).addBinding("prefill-decode").to(PrefillDecodeRouting.class);
  }

  @Provides
  @Singleton
  static AttentionBackends backends(
      Map<BackendName, AttentionBackend<?>> bound, Set<CompositeBinding> composites) {
    return new AttentionBackends(BackendAssembly.assemble(bound, composites));
  }

  @Provides
  @Singleton
  static BackendRegistry registry(AttentionBackends backends) {
    BackendRegistry registry = new BackendRegistry();
    backends
        .byName()
        .values()
        .forEach(backend -> registry.register(backend, backend.getClass().getName()));
    return registry;
  }

  @Provides
  @Singleton
  static LatentPrefillRegistry latentPrefills(Map<String, LatentPrefillProvider> bound) {
    LatentPrefillRegistry registry = new LatentPrefillRegistry();
    bound.forEach(registry::register);
    return registry;
  }

  @Provides
  @Singleton
  static Selector selector(
      BackendRegistry registry,
      Set<PlatformPolicy> platforms,
      PrefillDecodeRouting routing,
      LatentPrefillRegistry prefills) {
    return new Selector(
        registry,
        platforms,
        (prefill, decode) -> CompositeBackends.createCompositeBackend(prefill, decode, routing),
        prefills,
        new JfrObserver());
  }
}
