package bifocal.routing;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Child;
import bifocal.core.route.RouteReason;

/**
 * Sends to child A the requests for which a host's predicate holds, the others to child B. Both
 * children may get images, as nothing is known about the predicate.
 */
public final class PredicateRouting extends PerRequestRouting {
  private final String name;
  private final RequestPredicate toChildA;

  private PredicateRouting(boolean splits, String name, RequestPredicate toChildA) {
    super(splits);
    this.name = name;
    this.toChildA = toChildA;
  }

  /**
   * Splits batches by a predicate.
   *
   * @param name how reports call the policy
   */
  public PredicateRouting(String name, RequestPredicate toChildA) {
    this(true, name, toChildA);
  }

  /** The same policy, with every batch on one child: child A if the predicate holds once. */
  public PredicateRouting wholeBatch() {
    return new PredicateRouting(false, name, toChildA);
  }

  @Override
  Child child(LayerGroup group, CommonAttentionMetadata batch, int request) {
    return toChildA.test(group, batch, request) ? Child.A : Child.B;
  }

  @Override
  RouteReason reason(Child child) {
    return RouteReason.PREDICATE;
  }

  @Override
  public String name() {
    return name;
  }
}
