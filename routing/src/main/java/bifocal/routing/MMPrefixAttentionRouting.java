package bifocal.routing;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Child;
import bifocal.core.route.LoweredRuns;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.Route;
import bifocal.core.route.RouteReason;
import bifocal.core.route.RoutingPolicy;
import io.vavr.control.Option;

/**
 * Sends a request to child A, which knows images, only when its mask matters: when for some
 * scheduled query the layer's mask differs from the same mask without images. All else runs on
 * child B, and so does, where lowering is on, every image request that causal and non-causal runs
 * give exactly.
 *
 * @param splits whether one batch may be divided; without, one request that needs child A takes the
 *     batch along
 * @param lowering how far image requests may be cut into runs for child B
 */
public record MMPrefixAttentionRouting(boolean splits, Lowering lowering) implements RoutingPolicy {

  /** Splits batches and lowers nothing. */
  public MMPrefixAttentionRouting() {
    this(true, Lowering.OFF);
  }

  /** The same policy, with every batch on one child. */
  public MMPrefixAttentionRouting wholeBatch() {
    return new MMPrefixAttentionRouting(false, lowering);
  }

  /** The same policy with another lowering. */
  public MMPrefixAttentionRouting withLowering(Lowering other) {
    return new MMPrefixAttentionRouting(splits, other);
  }

  @Override
  public Route route(LayerGroup group, CommonAttentionMetadata batch) {
    AttentionMask mask = group.mask();
    requireOneMeaning(mask);
    batch.requireWholeImages(mask);
    ImageNeeds needs = new ImageNeeds(mask, batch, lowering);
    RequestRoutes.Builder requests = RequestRoutes.builder(batch.live());
    int scheduled = 0;
    int lowered = 0;
    for (int r = 0; r < batch.live(); r++) {
      RouteReason reason = needs.assign(requests, r);
      scheduled += reason == RouteReason.EMPTY ? 0 : 1;
      lowered += reason == RouteReason.LOWERED ? 1 : 0;
    }
    int onA = requests.count(Child.A);
    if (onA > 0 && !splits) {
      return new Route.ToChildA(requests.follow(Child.A).build());
    }
    RequestRoutes routes = requests.build();
    if (onA > 0 && onA == scheduled) {
      return new Route.ToChildA(routes);
    }
    if (lowered == 0) {
      return onA == 0
          ? new Route.ToChildB(routes)
          : new Route.SplitByRequest(routes, Option.none());
    }
    LoweredRuns runs = runs(needs, routes);
    return onA == 0
        ? new Route.Lowered(routes, runs)
        : new Route.SplitByRequest(routes, Option.some(runs));
  }

  private static LoweredRuns runs(ImageNeeds needs, RequestRoutes routes) {
    LoweredRuns.Builder runs = LoweredRuns.builder(routes.size());
    for (int r = 0; r < routes.size(); r++) {
      if (routes.reason(r) == RouteReason.LOWERED) {
        needs.addRuns(runs, r);
      }
      runs.endRequest();
    }
    return runs.build();
  }

  private static void requireOneMeaning(AttentionMask mask) {
    if (mask.seesImages() && mask.chunk().isDefined()) {
      throw BifocalException.of(
          ErrorCode.UNSUPPORTED,
          "image mask " + mask.images().label() + " with chunked-local attention",
          "chunks of " + mask.chunk().get(),
          "one of the two");
    }
  }

  /** Child B never sees an image. */
  @Override
  public boolean carriesImages(Child child) {
    return child == Child.A;
  }

  @Override
  public boolean lowers() {
    return lowering != Lowering.OFF;
  }

  @Override
  public boolean lowersWithRightWindow() {
    return lowering == Lowering.BOTH_WINDOWS;
  }

  /**
   * Batches of single queries stay on child B: such a query has no later key. Only an {@code
   * OVERRIDE} image can add keys behind a window, for the image's last query.
   */
  @Override
  public GraphSupport graphSupport(LayerGroup group) {
    AttentionMask mask = group.mask();
    boolean addsPastKeys = mask.images() == ImageMask.OVERRIDE && mask.window().isDefined();
    return addsPastKeys ? GraphSupport.NEVER : GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE;
  }
}
