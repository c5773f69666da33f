package bifocal.cli.backend;

import bifocal.composite.CompositeBackend;
import bifocal.composite.CompositeBackends;
import bifocal.composite.guice.AttentionBackends;
import bifocal.composite.guice.BifocalInjector;
import bifocal.composite.guice.PlatformModules;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.BackendName;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.NearestName;
import bifocal.core.route.RoutingPolicy;
import bifocal.routing.MMPrefixAttentionRouting;

/**
 * The backends of the platforms on the class path, by name, and pairs {@code A+B} of them composed
 * on the spot, nested ones too.
 */
public final class BackendCatalog {
  private final AttentionBackends backends;

  private BackendCatalog(AttentionBackends backends) {
    this.backends = backends;
  }

  /** The backends of every platform that is there. */
  public static BackendCatalog present() {
    return new BackendCatalog(
        BifocalInjector.create(PlatformModules.detect().present())
            .getInstance(AttentionBackends.class));
  }

  /** These backends. */
  public static BackendCatalog of(AttentionBackends backends) {
    return new BackendCatalog(backends);
  }

  /** The backends as they were bound. */
  public AttentionBackends backends() {
    return backends;
  }

  /**
   * The backend of a name in any letter case, or a pair. A pair, and a composite that routes by
   * images, gets this policy; other backends have none to replace.
   *
   * @throws BifocalException {@code UNKNOWN_BACKEND} with the nearest known name, {@code
   *     INVALID_OPTION} when the text is no expression, or {@code INVALID_COMPOSITION} with every
   *     reason
   */
  public AttentionBackend<?> find(String text, RoutingPolicy policy) {
    return BackendExpression.of(text).backend(name -> named(name, policy), policy);
  }

  private AttentionBackend<?> named(String text, RoutingPolicy policy) {
    AttentionBackend<?> backend = named(text);
    return backend instanceof CompositeBackend<?, ?> composite
            && composite.policy() instanceof MMPrefixAttentionRouting
        ? routedBy(composite, policy)
        : backend;
  }

  private AttentionBackend<?> named(String text) {
    BackendName name = BackendName.of(text);
    return backends
        .byName()
        .get(name)
        .getOrElseThrow(
            () ->
                BifocalException.of(
                        ErrorCode.UNKNOWN_BACKEND,
                        "backend",
                        name,
                        backends.byName().keySet().mkString(", "))
                    .withRemedy(
                        NearestName.advice(
                            name.value(),
                            backends.byName().keySet().map(BackendName::value).toJavaSet())));
  }

  private static <MA extends AttentionMetadata, MB extends AttentionMetadata>
      AttentionBackend<?> routedBy(CompositeBackend<MA, MB> composite, RoutingPolicy policy) {
    return CompositeBackends.createCompositeBackendOrThrow(
        composite.name(), composite.childA(), composite.childB(), policy, composite.limits());
  }
}
