package bifocal.routing;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Child;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.Route;
import bifocal.core.route.RouteReason;
import bifocal.core.route.RoutingPolicy;

/**
 * Sends every batch to the same child: to measure one child in place, or to turn the other one off.
 *
 * @param child the child that runs everything
 */
public record FixedRouting(Child child) implements RoutingPolicy {

  @Override
  public Route route(LayerGroup group, CommonAttentionMetadata batch) {
    batch.requireWholeImages(group.mask());
    RequestRoutes.Builder requests = RequestRoutes.builder(batch.live());
    for (int r = 0; r < batch.live(); r++) {
      requests.set(r, child, batch.queryLen(r) == 0 ? RouteReason.EMPTY : RouteReason.FIXED);
    }
    return Route.whole(child, requests.build());
  }

  @Override
  public boolean carriesImages(Child other) {
    return other == child;
  }

  @Override
  public boolean splits() {
    return false;
  }

  @Override
  public GraphSupport graphSupport(LayerGroup group) {
    return GraphSupport.ALWAYS;
  }

  @Override
  public Child captureChild() {
    return child;
  }
}
