package bifocal.routing;

import bifocal.core.backend.BackendName;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.bench.Calibration;
import bifocal.core.bench.ChildTime;
import bifocal.core.bench.ChildTime.Phase;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Child;
import bifocal.core.route.LoweredRuns;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.RequestRoutes.Expected;
import bifocal.core.route.Route;
import bifocal.core.route.RouteReason;
import bifocal.core.route.RoutingPolicy;
import bifocal.core.tensor.DType;
import io.vavr.Tuple;
import io.vavr.collection.HashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.control.Option;

/**
 * Routes by images, and where both children are right for a request lets measured times decide.
 * What needs child A stays there; what may run on child B, lowered or not, goes to the child that
 * takes less time, as far as the policy underneath divides batches. Whatever is the faster way by
 * less than {@link #MARGIN} leaves the route as it is, and so does a layer of which nothing was
 * measured.
 *
 * <p>A batch whose captured graph may be replayed keeps its route.
 */
public final class MeasuredRouting implements RoutingPolicy {
  /** Part of the expected time by which another route must be faster. */
  public static final double MARGIN = 0.10;

  private final MMPrefixAttentionRouting policy;
  private final Map<Kind, Pair> measured;

  /** What layers must have in common to take equally long. */
  private record Kind(DType dtype, int headSize) {
    static Kind of(ChildTime time) {
      return new Kind(time.dtype(), time.headSize());
    }
  }

  /** Times of both children. */
  private record Pair(ChildRates a, ChildRates b) {}

  /**
   * A policy over two children.
   *
   * @param policy decides what is right; its {@code splits} and {@code lowering} stay in force
   * @param table valid on this host, see {@link Calibration#requireValidHere}
   */
  public MeasuredRouting(
      MMPrefixAttentionRouting policy, Calibration table, BackendName childA, BackendName childB) {
    this(policy, table.times(), childA, childB);
  }

  /**
   * A policy over two children whose times this process measured itself.
   *
   * @param policy decides what is right; its {@code splits} and {@code lowering} stay in force
   */
  public MeasuredRouting(
      MMPrefixAttentionRouting policy,
      Seq<ChildTime> times,
      BackendName childA,
      BackendName childB) {
    this.policy = policy;
    this.measured =
        HashMap.ofEntries(
            times
                .map(Kind::of)
                .distinct()
                .flatMap(
                    kind -> pair(times, kind, childA, childB).map(pair -> Tuple.of(kind, pair))));
  }

  private static Option<Pair> pair(Seq<ChildTime> times, Kind kind, BackendName a, BackendName b) {
    return ChildRates.of(times, a, kind.dtype(), kind.headSize())
        .flatMap(
            ratesOfA ->
                ChildRates.of(times, b, kind.dtype(), kind.headSize())
                    .map(ratesOfB -> new Pair(ratesOfA, ratesOfB)));
  }

  /** Whether both children were measured in layers like those of a group. */
  public boolean knows(LayerGroup group) {
    return measured.containsKey(new Kind(group.spec().dtype(), group.spec().headSize()));
  }

  @Override
  public Route route(LayerGroup group, CommonAttentionMetadata batch) {
    Route right = policy.route(group, batch);
    Option<Pair> times = measured.get(new Kind(group.spec().dtype(), group.spec().headSize()));
    return times.isEmpty() || batch.isEmpty() || keepsItsGraph(group, batch)
        ? right
        : new Choice(group, batch, right, times.get()).faster();
  }

  private boolean keepsItsGraph(LayerGroup group, CommonAttentionMetadata batch) {
    boolean single = policy.graphSupport(group) != GraphSupport.NEVER;
    for (int r = 0; single && r < batch.live(); r++) {
      single = batch.queryLen(r) == 1;
    }
    return single;
  }

  /** The routes of one batch that are right, and what they take. */
  private final class Choice {
    private final LayerGroup group;
    private final CommonAttentionMetadata batch;
    private final Route right;
    private final Pair times;

    private Choice(LayerGroup group, CommonAttentionMetadata batch, Route right, Pair times) {
      this.group = group;
      this.batch = batch;
      this.right = right;
      this.times = times;
    }

    private Route faster() {
      double present = 0;
      double best = 0;
      double onA = 0;
      boolean freedom = false;
      RequestRoutes.Builder moved = RequestRoutes.builder(batch.live());
      for (int r = 0; r < batch.live(); r++) {
        RequestRoutes routes = right.requests();
        copy(moved, routes, r, routes.child(r), routes.reason(r));
        if (routes.reason(r) == RouteReason.EMPTY) {
          continue;
        }
        double a = nanos(Child.A, r);
        double b = nanos(Child.B, r);
        boolean open = routes.child(r) == Child.B;
        present += open ? b : a;
        onA += a;
        freedom |= open;
        boolean toA = open && a < b;
        best += toA || !open ? a : b;
        if (toA) {
          copy(moved, routes, r, Child.A, RouteReason.MEASURED);
        }
      }
      if (!freedom || !(present > 0) || Double.isNaN(onA)) {
        return right;
      }
      return policy.splits() ? divided(moved, present, best, onA) : whole(present, onA);
    }

    private Route divided(RequestRoutes.Builder moved, double present, double best, double onA) {
      return best < (1 - MARGIN) * present
          ? route(moved.expecting(expected(best, present)))
          : kept(present, onA);
    }

    /** Without division the whole batch goes to child A or stays where it is. */
    private Route whole(double present, double onA) {
      if (!(onA < (1 - MARGIN) * present)) {
        return kept(present, onA);
      }
      RequestRoutes.Builder moved = RequestRoutes.builder(batch.live());
      for (int r = 0; r < batch.live(); r++) {
        RouteReason reason = right.requests().reason(r);
        boolean stays = reason == RouteReason.EMPTY || right.requests().child(r) == Child.A;
        copy(moved, right.requests(), r, Child.A, stays ? reason : RouteReason.MEASURED);
      }
      return new Route.ToChildA(moved.expecting(expected(onA, present)).build());
    }

    /** The route as it is, with what it takes beside the whole batch on child A. */
    private Route kept(double present, double onA) {
      RequestRoutes.Builder same = RequestRoutes.builder(batch.live());
      for (int r = 0; r < batch.live(); r++) {
        RequestRoutes routes = right.requests();
        copy(same, routes, r, routes.child(r), routes.reason(r));
      }
      RequestRoutes routes = same.expecting(expected(present, onA)).build();
      return switch (right) {
        case Route.ToChildA a -> new Route.ToChildA(routes);
        case Route.ToChildB b -> new Route.ToChildB(routes);
        case Route.SplitByRequest split -> new Route.SplitByRequest(routes, split.runs());
        case Route.Lowered lowered -> new Route.Lowered(routes, lowered.runs());
      };
    }

    /** A divided batch, or a whole one where one child is left without a query. */
    private Route route(RequestRoutes.Builder moved) {
      RequestRoutes routes = moved.build();
      boolean someOnB = false;
      for (int r = 0; r < routes.size(); r++) {
        someOnB |= routes.child(r) == Child.B && routes.reason(r) != RouteReason.EMPTY;
      }
      return someOnB
          ? new Route.SplitByRequest(routes, runs().flatMap(runs -> left(runs, routes)))
          : new Route.ToChildA(routes);
    }

    private Option<LoweredRuns> runs() {
      return switch (right) {
        case Route.ToChildA a -> Option.none();
        case Route.ToChildB b -> Option.none();
        case Route.SplitByRequest split -> split.runs();
        case Route.Lowered lowered -> Option.some(lowered.runs());
      };
    }

    /** The runs of requests that are still on child B, absent when there are none. */
    private Option<LoweredRuns> left(LoweredRuns runs, RequestRoutes routes) {
      LoweredRuns.Builder left = LoweredRuns.builder(routes.size());
      for (int r = 0; r < routes.size(); r++) {
        for (int i = 0; routes.child(r) == Child.B && i < runs.count(r); i++) {
          left.run(runs.first(r, i), runs.last(r, i), runs.rightWindow(r, i));
        }
        left.endRequest();
      }
      LoweredRuns built = left.build();
      return Option.when(built.total() > 0, built);
    }

    private double nanos(Child child, int request) {
      int queries = batch.queryLen(request);
      int keys = batch.seqLen(request);
      ChildRates rates = child == Child.A ? times.a() : times.b();
      return rates.nanosPerPair(phase(request), queries, keys)
          * group.spec().numHeads()
          * pairs(group.mask(), queries, keys);
    }

    private Phase phase(int request) {
      return switch (right.requests().reason(request)) {
        case NEEDS_FUTURE_KEY, NEEDS_KEY_BEHIND_WINDOW, LOWERED, NOT_LOWERABLE -> Phase.IMAGE;
        case MASK_EQUAL,
            NO_IMAGE_QUERY,
            EMPTY,
            FOLLOWS_BATCH,
            PREFILL,
            DECODE,
            PREDICATE,
            FIXED,
            MEASURED ->
            batch.queryLen(request) == 1 ? Phase.DECODE : Phase.PREFILL;
      };
    }
  }

  private static void copy(
      RequestRoutes.Builder to, RequestRoutes from, int request, Child child, RouteReason reason) {
    to.set(request, child, reason, from.query(request), from.key(request));
  }

  private static Expected expected(double nanos, double otherwise) {
    return new Expected(Math.round(nanos), Math.round(otherwise));
  }

  /** Pairs of a query and a key that it sees causally, within the window. */
  static double pairs(AttentionMask mask, int queries, int keys) {
    double all = (double) queries * keys - (double) queries * (queries - 1) / 2;
    if (mask.leftWindow() < 0) {
      return all;
    }
    int window = mask.leftWindow() + 1;
    double behind = Math.max(0, keys - window);
    double before = Math.max(0, behind - queries);
    // Query i sees i + 1 keys; what lies behind the window falls away, one more for each query.
    return all - (behind * (behind + 1) - before * (before + 1)) / 2;
  }

  @Override
  public String name() {
    return policy.name() + ", measured";
  }

  @Override
  public boolean carriesImages(Child child) {
    return policy.carriesImages(child);
  }

  @Override
  public boolean lowers() {
    return policy.lowers();
  }

  @Override
  public boolean lowersWithRightWindow() {
    return policy.lowersWithRightWindow();
  }

  @Override
  public boolean splits() {
    return policy.splits();
  }

  @Override
  public GraphSupport graphSupport(LayerGroup group) {
    return policy.graphSupport(group);
  }

  @Override
  public Child captureChild() {
    return policy.captureChild();
  }
}
