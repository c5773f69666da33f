package bifocal.composite;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.InvalidReason;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.route.RoutingPolicy;
import io.vavr.collection.Seq;
import io.vavr.control.Validation;

/**
 * Makes one backend of two. Child A is the general one and alone writes the KV cache; child B is
 * the fast one; a policy decides each step who runs what. What comes out is a backend like any
 * other, so it can be a child again.
 */
public final class CompositeBackends {
  private CompositeBackends() {}

  /** Composes two backends under the name {@code A+B}, without further limits. */
  public static <MA extends AttentionMetadata, MB extends AttentionMetadata>
      Validation<Seq<InvalidReason>, AttentionBackend<CompositeMetadata<MA, MB>>>
          createCompositeBackend(
              AttentionBackend<MA> childA, AttentionBackend<MB> childB, RoutingPolicy policy) {
    return createCompositeBackend(
        pairName(childA.name(), childB.name()), childA, childB, policy, CompositeLimits.NONE);
  }

  /**
   * Composes two backends.
   *
   * @param name how the composite is registered
   * @param limits what it shall not claim although both children can
   * @return the composite, or every reason why the two do not meet
   */
  public static <MA extends AttentionMetadata, MB extends AttentionMetadata>
      Validation<Seq<InvalidReason>, AttentionBackend<CompositeMetadata<MA, MB>>>
          createCompositeBackend(
              BackendName name,
              AttentionBackend<MA> childA,
              AttentionBackend<MB> childB,
              RoutingPolicy policy,
              CompositeLimits limits) {
    Seq<InvalidReason> reasons = CompositionRules.reasons(childA, childB, policy, limits);
    return reasons.isEmpty()
        ? Validation.valid(new CompositeBackend<>(name, childA, childB, policy, limits))
        : Validation.invalid(reasons);
  }

  /**
   * As {@link #createCompositeBackend(AttentionBackend, AttentionBackend, RoutingPolicy)}, for
   * those who cannot go on without.
   *
   * @throws BifocalException {@code INVALID_COMPOSITION} with every reason
   */
  public static <MA extends AttentionMetadata, MB extends AttentionMetadata>
      AttentionBackend<CompositeMetadata<MA, MB>> createCompositeBackendOrThrow(
          AttentionBackend<MA> childA, AttentionBackend<MB> childB, RoutingPolicy policy) {
    return orThrow(childA.name(), childB.name(), createCompositeBackend(childA, childB, policy));
  }

  /**
   * As {@link #createCompositeBackend(BackendName, AttentionBackend, AttentionBackend,
   * RoutingPolicy, CompositeLimits)}, for those who cannot go on without.
   *
   * @throws BifocalException {@code INVALID_COMPOSITION} with every reason
   */
  public static <MA extends AttentionMetadata, MB extends AttentionMetadata>
      AttentionBackend<CompositeMetadata<MA, MB>> createCompositeBackendOrThrow(
          BackendName name,
          AttentionBackend<MA> childA,
          AttentionBackend<MB> childB,
          RoutingPolicy policy,
          CompositeLimits limits) {
    return orThrow(
        childA.name(), childB.name(), createCompositeBackend(name, childA, childB, policy, limits));
  }

  private static BackendName pairName(BackendName a, BackendName b) {
    return new BackendName(inParentheses(a) + "+" + inParentheses(b));
  }

  private static String inParentheses(BackendName name) {
    return name.value().contains("+") ? "(" + name + ")" : name.value();
  }

  private static <T> T orThrow(
      BackendName a, BackendName b, Validation<Seq<InvalidReason>, T> composite) {
    if (composite.isInvalid()) {
      throw BifocalException.of(
              ErrorCode.INVALID_COMPOSITION,
              "composite of " + a + " and " + b,
              composite.getError().map(r -> r.text() + " (" + r.seen() + ")").mkString("; "),
              "two backends that share a device, a cache and a layer")
          .withRemedy("choose another pair, or use one of the two alone");
    }
    return composite.get();
  }
}
