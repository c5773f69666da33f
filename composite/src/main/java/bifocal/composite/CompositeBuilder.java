package bifocal.composite;

import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Child;
import bifocal.core.route.LoweredRuns;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.Route;
import bifocal.core.route.RoutingPolicy;
import io.vavr.control.Option;

/** Asks the policy once, then only the builders of the children that run. */
final class CompositeBuilder<MA extends AttentionMetadata, MB extends AttentionMetadata>
    implements AttentionMetadataBuilder<CompositeMetadata<MA, MB>> {
  private final ChildBuilder<MA> a;
  private final ChildBuilder<MB> b;
  private final RoutingPolicy policy;
  private final GraphSupport graphSupport;

  CompositeBuilder(
      ChildBuilder<MA> a, ChildBuilder<MB> b, RoutingPolicy policy, GraphSupport graphSupport) {
    this.a = a;
    this.b = b;
    this.policy = policy;
    this.graphSupport = graphSupport;
  }

  @Override
  public CompositeMetadata<MA, MB> build(
      StepContext step, LayerGroup group, CommonAttentionMetadata batch) {
    step.launch().requireOwner();
    Route route = route(step.launch().observer(), group, batch);
    if (batch.isEmpty()) {
      return new CompositeMetadata.Idle<>(route);
    }
    return switch (route) {
      case Route.ToChildA toA ->
          new CompositeMetadata.OnChildA<>(
              toA, a.whole(step, group, batch), captureSafe(Child.A, batch));
      case Route.ToChildB toB ->
          new CompositeMetadata.OnChildB<>(
              toB, b.whole(step, group, batch), captureSafe(Child.B, batch));
      case Route.SplitByRequest split -> split(step, group, batch, split);
      case Route.Lowered lowered ->
          lowered(step, group, batch, lowered, Option.some(lowered.runs()));
    };
  }

  /** A part without a query is left out. */
  private CompositeMetadata<MA, MB> split(
      StepContext step,
      LayerGroup group,
      CommonAttentionMetadata batch,
      Route.SplitByRequest split) {
    RequestRoutes requests = split.requests();
    if (BatchCut.queryTokens(batch, requests, Child.B) == 0) {
      return new CompositeMetadata.OnChildA<>(split, a.whole(step, group, batch), false);
    }
    if (BatchCut.queryTokens(batch, requests, Child.A) == 0) {
      return split.runs().isDefined()
          ? lowered(step, group, batch, split, split.runs())
          : new CompositeMetadata.OnChildB<>(split, b.whole(step, group, batch), false);
    }
    return new CompositeMetadata.Split<>(
        split,
        a.some(step, group, BatchCut.of(batch, requests, Child.A, Option.none())),
        b.some(step, group, BatchCut.of(batch, requests, Child.B, split.runs())));
  }

  private CompositeMetadata<MA, MB> lowered(
      StepContext step,
      LayerGroup group,
      CommonAttentionMetadata batch,
      Route route,
      Option<LoweredRuns> runs) {
    return new CompositeMetadata.Lowered<>(
        route, b.some(step, group, BatchCut.of(batch, route.requests(), Child.B, runs)));
  }

  private Route route(AttentionObserver observer, LayerGroup group, CommonAttentionMetadata batch) {
    boolean observed = observer.enabled();
    long start = observed ? System.nanoTime() : 0;
    Route route = policy.route(group, batch);
    if (observed) {
      observer.routed(group, batch, route, System.nanoTime() - start);
    }
    RouteRules.require(policy, route, batch);
    return route;
  }

  private boolean captureSafe(Child child, CommonAttentionMetadata batch) {
    return child == policy.captureChild()
        && switch (graphSupport) {
          case NEVER -> false;
          case UNIFORM_SINGLE_TOKEN_DECODE -> uniform(batch, 1);
          case UNIFORM_BATCH -> uniform(batch, batch.maxQueryLen());
          case ALWAYS -> true;
        };
  }

  private static boolean uniform(CommonAttentionMetadata batch, int queries) {
    boolean uniform = true;
    for (int r = 0; r < batch.live(); r++) {
      uniform &= batch.queryLen(r) == queries;
    }
    return uniform;
  }

  @Override
  public Option<Integer> decodeThreshold() {
    Option<Integer> ofA = a.builder().decodeThreshold();
    Option<Integer> ofB = b.builder().decodeThreshold();
    return ofA.isEmpty() ? ofB : ofA.map(x -> ofB.fold(() -> x, y -> Math.min(x, y)));
  }

  @Override
  public void close() {
    try {
      a.builder().close();
    } finally {
      b.builder().close();
    }
  }
}
