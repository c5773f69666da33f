package bifocal.composite;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Child;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.Route;
import bifocal.core.route.RouteReason;
import bifocal.core.route.RoutingPolicy;
import io.vavr.collection.HashSet;
import io.vavr.collection.Set;
import java.util.function.IntFunction;

/** A policy put together from its answers. */
record FakePolicy(
    Router router,
    Set<Child> imageCarriers,
    boolean lowers,
    boolean splits,
    GraphSupport graphSupport,
    Child captureChild)
    implements RoutingPolicy {

  /** The deciding part. */
  interface Router {
    Route route(LayerGroup group, CommonAttentionMetadata batch);
  }

  static FakePolicy of(Router router) {
    return new FakePolicy(
        router, HashSet.of(Child.A, Child.B), false, true, GraphSupport.NEVER, Child.B);
  }

  /** The whole batch to A when some request has an image, else to B; only A applies images. */
  static FakePolicy imagesToA() {
    return of((group, batch) -> toChild(batch, batch.images().isEmpty() ? Child.B : Child.A))
        .onlyACarriesImages()
        .wholeBatches();
  }

  /** Always the same child. */
  static FakePolicy always(Child child) {
    return of((group, batch) -> toChild(batch, child)).wholeBatches();
  }

  /** Each request to the child that is chosen for it. */
  static FakePolicy byRequest(IntFunction<Child> choice) {
    return of((group, batch) -> split(batch, choice));
  }

  static Route toChild(CommonAttentionMetadata batch, Child child) {
    return Route.whole(child, RequestRoutes.all(batch.live(), child, RouteReason.FIXED));
  }

  static Route split(CommonAttentionMetadata batch, IntFunction<Child> choice) {
    return new Route.SplitByRequest(routes(batch, choice), io.vavr.control.Option.none());
  }

  static RequestRoutes routes(CommonAttentionMetadata batch, IntFunction<Child> choice) {
    RequestRoutes.Builder routes = RequestRoutes.builder(batch.live());
    for (int r = 0; r < batch.live(); r++) {
      routes.set(r, choice.apply(r), RouteReason.PREDICATE);
    }
    return routes.build();
  }

  FakePolicy onlyACarriesImages() {
    return new FakePolicy(router, HashSet.of(Child.A), lowers, splits, graphSupport, captureChild);
  }

  FakePolicy wholeBatches() {
    return new FakePolicy(router, imageCarriers, lowers, false, graphSupport, captureChild);
  }

  FakePolicy lowering() {
    return new FakePolicy(router, imageCarriers, true, splits, graphSupport, captureChild);
  }

  FakePolicy withGraphSupport(GraphSupport support) {
    return new FakePolicy(router, imageCarriers, lowers, splits, support, captureChild);
  }

  FakePolicy capturing(Child child) {
    return new FakePolicy(router, imageCarriers, lowers, splits, graphSupport, child);
  }

  @Override
  public Route route(LayerGroup group, CommonAttentionMetadata batch) {
    return router.route(group, batch);
  }

  @Override
  public String name() {
    return "fake";
  }

  @Override
  public boolean carriesImages(Child child) {
    return imageCarriers.contains(child);
  }

  @Override
  public GraphSupport graphSupport(LayerGroup group) {
    return graphSupport;
  }
}
