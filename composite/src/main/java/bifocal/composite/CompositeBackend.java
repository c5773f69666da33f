package bifocal.composite;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.Composed;
import bifocal.core.backend.Execution;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.backend.StatedGraphSupport;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.route.Child;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.RoutingPolicy;
import bifocal.core.tensor.DType;
import bifocal.core.workspace.WorkspacePlan;
import io.vavr.collection.Set;
import io.vavr.control.Option;
import java.util.function.BinaryOperator;

/**
 * Two backends and the policy that routes between them. It alone makes and closes its children's
 * builders and implementations.
 */
public final class CompositeBackend<MA extends AttentionMetadata, MB extends AttentionMetadata>
    implements AttentionBackend<CompositeMetadata<MA, MB>>, Composed {
  private final BackendName name;
  private final Part<MA> a;
  private final Part<MB> b;
  private final RoutingPolicy policy;
  private final CompositeLimits limits;
  private final KnownMeetings meetings = new KnownMeetings();

  CompositeBackend(
      BackendName name,
      AttentionBackend<MA> childA,
      AttentionBackend<MB> childB,
      RoutingPolicy policy,
      CompositeLimits limits) {
    this.name = name;
    this.a = Part.of(Child.A, childA, policy);
    this.b = Part.of(Child.B, childB, policy);
    this.policy = policy;
    this.limits = limits;
  }

  @Override
  public BackendName name() {
    return name;
  }

  @Override
  public AttentionBackend<MA> childA() {
    return a.backend();
  }

  @Override
  public AttentionBackend<MB> childB() {
    return b.backend();
  }

  @Override
  public RoutingPolicy policy() {
    return policy;
  }

  @Override
  public AttentionRequest asked(Child child, AttentionRequest request) {
    return switch (child) {
      case A -> a.view(request);
      case B -> b.view(request);
    };
  }

  /** What the composite does not claim although its children can. */
  public CompositeLimits limits() {
    return limits;
  }

  @Override
  public Capabilities capabilities() {
    return together(a.backend().capabilities(), b.backend().capabilities(), Option.none());
  }

  @Override
  public Capabilities capabilities(AttentionRequest request) {
    return together(
        a.backend().capabilities(a.view(request)),
        b.backend().capabilities(b.view(request)),
        Option.some(request.layer().dtype()));
  }

  private Capabilities together(Capabilities ofA, Capabilities ofB, Option<DType> model) {
    BinaryOperator<FeatureSet> meet =
        (left, right) -> limits.limit(SharedFeatures.of(left, right, policy, model));
    return meetings.of(
        ofA,
        ofB,
        model,
        () ->
            limits.referenceOnly()
                ? CompositeCapabilities.byReference(ofA, ofB, meet)
                : CompositeCapabilities.of(ofA, ofB, meet));
  }

  @Override
  public Option<InvalidReason> checkCombination(AttentionRequest request) {
    return a.backend()
        .checkCombination(a.view(request))
        .map(a::named)
        .orElse(() -> b.backend().checkCombination(b.view(request)).map(b::named))
        .orElse(() -> limits.objection(b.backend(), b.view(request)).map(b::named));
  }

  @Override
  public Set<ReasonCode> combinationReads() {
    Set<ReasonCode> ofA = a.backend().combinationReads();
    Set<ReasonCode> ofB = b.backend().combinationReads();
    return ofA.equals(ofB) ? ofA : ofA.union(ofB);
  }

  @Override
  public Option<InvalidReason> missingOnThisHost(AttentionRequest request) {
    return a.backend()
        .missingOnThisHost(a.view(request))
        .map(a::named)
        .orElse(() -> b.backend().missingOnThisHost(b.view(request)).map(b::named));
  }

  @Override
  public Execution execution() {
    Execution ofA = a.backend().execution();
    Execution ofB = b.backend().execution();
    if (ofA.equals(Execution.NATIVE) && ofB.equals(Execution.NATIVE)) {
      return Execution.NATIVE;
    }
    boolean weakerA = ofA.status().compareTo(ofB.status()) >= 0;
    Execution weaker = weakerA ? ofA : ofB;
    return new Execution(
        weaker.status(), (weakerA ? childA() : childB()).name() + ": " + weaker.reason());
  }

  @Override
  public GraphSupport graphSupport(LayerGroup group) {
    return graphSupport(group, Child.A)
        .weakest(graphSupport(group, Child.B))
        .weakest(policy.graphSupport(group));
  }

  /** Which of a group's batches one child can run inside a captured graph. */
  public GraphSupport graphSupport(LayerGroup group, Child child) {
    return switch (child) {
      case A -> StatedGraphSupport.of(a.backend(), a.view(group));
      case B -> StatedGraphSupport.of(b.backend(), b.view(group));
    };
  }

  @Override
  public WorkspacePlan workspace(LayerGroup group, KvCacheSpec cache, BatchLimits batches) {
    WorkspacePlan children =
        WorkspacePlan.overlay(
            a.prefix(),
            a.backend().workspace(a.view(group), cache, a.view(batches)),
            b.prefix(),
            b.backend().workspace(b.view(group), cache, b.view(batches)));
    boolean packs = policy.splits() && !(a.indirect() && b.indirect());
    WorkspacePlan plan =
        packs ? PackedRows.plan(children, group.spec(), batches.maxQueryTokens()) : children;
    return plan.withStepBytes(a.blockTableBytes(batches, cache))
        .withStepBytes(b.blockTableBytes(batches, cache));
  }

  /**
   * The order of a batch's requests in which each child's lie together, so that no row is copied:
   * child B's first, then child A's, each as they came.
   *
   * @return for each place in the new order, the request that stands there now
   */
  public int[] preferredOrder(LayerGroup group, CommonAttentionMetadata batch) {
    RequestRoutes routes = policy.route(group, batch).requests();
    int[] order = new int[routes.size()];
    int next = 0;
    for (Child child : new Child[] {Child.B, Child.A}) {
      for (int r = 0; r < routes.size(); r++) {
        if (routes.child(r) == child) {
          order[next++] = r;
        }
      }
    }
    return order;
  }

  @Override
  public AttentionMetadataBuilder<CompositeMetadata<MA, MB>> createBuilder(
      LayerGroup group, KvCacheSpec cache) {
    Declaration.of(this).require(group.spec(), cache);
    AttentionMetadataBuilder<MA> builderA = a.backend().createBuilder(a.view(group), cache);
    try {
      return new CompositeBuilder<>(
          new ChildBuilder<>(a, builderA, group, cache),
          new ChildBuilder<>(b, b.backend().createBuilder(b.view(group), cache), group, cache),
          policy,
          graphSupport(group));
    } catch (RuntimeException | Error failure) {
      close(builderA, failure);
      throw failure;
    }
  }

  @Override
  public AttentionImpl<CompositeMetadata<MA, MB>> createImpl(
      AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
    Declaration.of(this).require(layer, cache);
    AttentionImpl<MA> implA = a.backend().createImpl(a.view(layer), parameters, cache);
    try {
      return new CompositeImpl<>(
          new ChildImpl<>(a.backend(), implA),
          new ChildImpl<>(b.backend(), b.backend().createImpl(b.view(layer), parameters, cache)));
    } catch (RuntimeException | Error failure) {
      close(implA, failure);
      throw failure;
    }
  }

  /** Closes what was opened before a failure. */
  private static void close(AutoCloseable opened, Throwable failure) {
    try {
      opened.close();
    } catch (Exception another) {
      failure.addSuppressed(another);
    }
  }

  @Override
  public String toString() {
    return name.value();
  }
}
