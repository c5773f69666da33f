package bifocal.routing;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Child;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.Route;
import bifocal.core.route.RouteReason;
import bifocal.core.route.RoutingPolicy;
import io.vavr.control.Option;

/**
 * A policy that decides request by request: child A for some, child B for the rest. Either the
 * batch is split, or one request for child A takes it along. A batch without queries goes to B.
 */
abstract sealed class PerRequestRouting implements RoutingPolicy
    permits PrefillDecodeRouting, PredicateRouting {
  private final boolean splits;

  PerRequestRouting(boolean splits) {
    this.splits = splits;
  }

  /** The child for a live request that has queries. */
  abstract Child child(LayerGroup group, CommonAttentionMetadata batch, int request);

  /** Why a request goes to a child. */
  abstract RouteReason reason(Child child);

  @Override
  public final Route route(LayerGroup group, CommonAttentionMetadata batch) {
    batch.requireWholeImages(group.mask());
    RequestRoutes.Builder requests = RequestRoutes.builder(batch.live());
    int scheduled = 0;
    for (int r = 0; r < batch.live(); r++) {
      if (batch.queryLen(r) == 0) {
        requests.set(r, Child.B, RouteReason.EMPTY);
      } else {
        Child child = child(group, batch, r);
        requests.set(r, child, reason(child));
        scheduled++;
      }
    }
    int onA = requests.count(Child.A);
    if (onA == 0) {
      return new Route.ToChildB(requests.build());
    }
    if (!splits) {
      return new Route.ToChildA(requests.follow(Child.A).build());
    }
    RequestRoutes routes = requests.build();
    return onA == scheduled
        ? new Route.ToChildA(routes)
        : new Route.SplitByRequest(routes, Option.none());
  }

  @Override
  public final boolean splits() {
    return splits;
  }
}
