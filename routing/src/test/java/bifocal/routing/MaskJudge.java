package bifocal.routing;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.route.Child;
import bifocal.core.route.LoweredRuns;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.Route;
import bifocal.core.route.RouteReason;
import bifocal.core.route.RoutingPolicy;
import io.vavr.control.Either;
import java.util.ArrayList;
import java.util.List;

/**
 * Says what the route of a batch must be by looking at every cell of every query-by-key mask. It
 * knows the definition of the masks and the rules of routing, and nothing of how a router finds its
 * answer.
 *
 * @param mask mask of the layers
 * @param splits whether a batch may be divided
 * @param lowering how far images may be cut into runs
 */
record MaskJudge(AttentionMask mask, boolean splits, Lowering lowering) {

  /** One run that a request is cut into. */
  record Run(int first, int last, int rightWindow) {}

  /** What a request must be given. */
  record Answer(Child child, RouteReason reason, int query, int key, List<Run> runs) {
    Answer sentTo(Child other, RouteReason why) {
      return new Answer(other, why, query, key, List.of());
    }
  }

  /** What a batch must be given. */
  record Answers(String route, List<Answer> requests) {}

  /** A refusal, and the request that it names. */
  record Refusal(ErrorCode code, int request) {}

  /** What a policy says, in the same terms. */
  Either<Refusal, Answers> ask(RoutingPolicy policy, Batch batch) {
    try {
      Route route = policy.route(Batch.layers(mask), batch.metadata());
      List<Answer> answers = new ArrayList<>();
      for (int r = 0; r < route.requests().size(); r++) {
        RequestRoutes routes = route.requests();
        answers.add(
            new Answer(
                routes.child(r), routes.reason(r), routes.query(r), routes.key(r), runs(route, r)));
      }
      return Either.right(new Answers(route.label(), answers));
    } catch (BifocalException refusal) {
      return Either.left(new Refusal(refusal.code(), refusal.request().getOrElse(-1)));
    }
  }

  private static List<Run> runs(Route route, int request) {
    return switch (route) {
      case Route.Lowered lowered -> runs(lowered.runs(), request);
      case Route.SplitByRequest split ->
          split.runs().map(runs -> runs(runs, request)).getOrElse(List.of());
      case Route.ToChildA a -> List.of();
      case Route.ToChildB b -> List.of();
    };
  }

  private static List<Run> runs(LoweredRuns lowered, int request) {
    List<Run> runs = new ArrayList<>();
    for (int i = 0; i < lowered.count(request); i++) {
      runs.add(
          new Run(
              lowered.first(request, i),
              lowered.last(request, i),
              lowered.rightWindow(request, i)));
    }
    return runs;
  }

  /** What the policy must say. */
  Either<Refusal, Answers> judge(Batch batch) {
    for (int r = 0; r < batch.live(); r++) {
      if (cutsAnImage(batch.requests().get(r))) {
        return Either.left(new Refusal(ErrorCode.IMAGE_CUT, r));
      }
    }
    List<Answer> own = new ArrayList<>();
    for (int r = 0; r < batch.live(); r++) {
      own.add(judge(batch.requests().get(r)));
    }
    List<Answer> asking =
        own.stream().filter(answer -> answer.reason() != RouteReason.EMPTY).toList();
    boolean someOnA = asking.stream().anyMatch(answer -> answer.child() == Child.A);
    boolean someOnB = asking.stream().anyMatch(answer -> answer.child() == Child.B);
    boolean someRuns = asking.stream().anyMatch(answer -> !answer.runs().isEmpty());
    if (!someOnA) {
      return Either.right(new Answers(someRuns ? "LOWERED" : "B", own));
    }
    if (!splits) {
      return Either.right(new Answers("A", own.stream().map(MaskJudge::following).toList()));
    }
    return Either.right(new Answers(someOnB ? "SPLIT" : "A", own));
  }

  private static Answer following(Answer answer) {
    boolean keepsReason = answer.child() == Child.A || answer.reason() == RouteReason.EMPTY;
    return answer.sentTo(Child.A, keepsReason ? answer.reason() : RouteReason.FOLLOWS_BATCH);
  }

  /** Whether some, not all, of an image's keys exist once the step has run. */
  private boolean cutsAnImage(Batch.Request request) {
    if (mask.images() == ImageMask.NONE || request.queryLen() == 0) {
      return false;
    }
    for (int image = 0; image < request.imageCount(); image++) {
      boolean someExist = false;
      boolean allExist = true;
      for (int key = request.first(image); key <= request.last(image); key++) {
        someExist |= key < request.seqLen();
        allExist &= key < request.seqLen();
      }
      if (someExist && !allExist) {
        return true;
      }
    }
    return false;
  }

  private Answer judge(Batch.Request request) {
    if (request.queryLen() == 0) {
      return unchanged(RouteReason.EMPTY);
    }
    boolean inImage = false;
    for (int q = request.seqLen() - request.queryLen(); q < request.seqLen(); q++) {
      inImage |= mask.images() != ImageMask.NONE && imageOf(request, q) >= 0;
      for (int k = 0; k < request.seqLen(); k++) {
        if (layerSees(request, q, k) != fastChildSees(q, k)) {
          return changed(request, q, k);
        }
      }
    }
    return unchanged(inImage ? RouteReason.MASK_EQUAL : RouteReason.NO_IMAGE_QUERY);
  }

  private static Answer unchanged(RouteReason reason) {
    return new Answer(Child.B, reason, -1, -1, List.of());
  }

  private Answer changed(Batch.Request request, int q, int k) {
    if (lowering == Lowering.OFF) {
      RouteReason reason =
          k > q ? RouteReason.NEEDS_FUTURE_KEY : RouteReason.NEEDS_KEY_BEHIND_WINDOW;
      return new Answer(Child.A, reason, q, k, List.of());
    }
    List<Run> runs = fewestRuns(request);
    return runs.isEmpty()
        ? new Answer(Child.A, RouteReason.NOT_LOWERABLE, q, k, runs)
        : new Answer(Child.B, RouteReason.LOWERED, q, k, runs);
  }

  /**
   * The fewest runs that give every cell of a request, none when no runs do. Queries of one image
   * that gets keys from it share a run; all between such runs is causal.
   */
  private List<Run> fewestRuns(Batch.Request request) {
    List<Run> runs = new ArrayList<>();
    int first = request.seqLen() - request.queryLen();
    while (first < request.seqLen()) {
      int image = changingImageOf(request, first);
      int last = first;
      while (last + 1 < request.seqLen() && changingImageOf(request, last + 1) == image) {
        last++;
      }
      int rightWindow = rightWindow(request, first, last, image >= 0);
      if (rightWindow == IMPOSSIBLE) {
        return List.of();
      }
      runs.add(new Run(first, last, rightWindow));
      first = last + 1;
    }
    return runs;
  }

  private static final int IMPOSSIBLE = -2;

  private int rightWindow(Batch.Request request, int first, int last, boolean image) {
    if (!image) {
      return gives(request, new Run(first, last, 0)) ? 0 : IMPOSSIBLE;
    }
    if (gives(request, new Run(first, last, -1))) {
      return -1;
    }
    if (lowering == Lowering.BOTH_WINDOWS) {
      for (int rightWindow = 1; rightWindow <= request.seqLen(); rightWindow++) {
        if (gives(request, new Run(first, last, rightWindow))) {
          return rightWindow;
        }
      }
    }
    return IMPOSSIBLE;
  }

  /** Whether a run gives each of its queries exactly the keys that the layer's mask does. */
  boolean gives(Batch.Request request, Run run) {
    for (int q = run.first(); q <= run.last(); q++) {
      for (int k = 0; k < request.seqLen(); k++) {
        boolean seen =
            k <= run.last()
                && inPastWindow(q, k)
                && (run.rightWindow() < 0 || k - q <= run.rightWindow());
        if (seen != layerSees(request, q, k)) {
          return false;
        }
      }
    }
    return true;
  }

  /** The image of a query, if that image changes what one of its scheduled queries sees. */
  private int changingImageOf(Batch.Request request, int query) {
    int image = imageOf(request, query);
    if (image < 0) {
      return -1;
    }
    for (int q = request.seqLen() - request.queryLen(); q < request.seqLen(); q++) {
      for (int k = 0; imageOf(request, q) == image && k < request.seqLen(); k++) {
        if (layerSees(request, q, k) != fastChildSees(q, k)) {
          return image;
        }
      }
    }
    return -1;
  }

  private boolean layerSees(Batch.Request request, int q, int k) {
    boolean causal = k <= q;
    boolean past = inPastWindow(q, k);
    boolean future = mask.window().isEmpty() || k - q < mask.window().get();
    boolean sameImage = imageOf(request, q) >= 0 && imageOf(request, q) == imageOf(request, k);
    return switch (mask.images()) {
      case NONE -> causal && past;
      case OVERRIDE -> (causal && past) || sameImage;
      case CLAMP_PAST -> past && (causal || sameImage);
      case CLAMP_BOTH -> past && future && (causal || sameImage);
    };
  }

  private boolean fastChildSees(int q, int k) {
    return k <= q && inPastWindow(q, k);
  }

  private boolean inPastWindow(int q, int k) {
    return mask.window().isEmpty() || q - k < mask.window().get();
  }

  private static int imageOf(Batch.Request request, int position) {
    for (int image = 0; image < request.imageCount(); image++) {
      if (request.first(image) <= position && position <= request.last(image)) {
        return image;
      }
    }
    return -1;
  }
}
