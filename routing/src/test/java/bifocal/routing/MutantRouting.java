package bifocal.routing;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Child;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.Route;
import bifocal.core.route.RouteReason;
import bifocal.core.route.RoutingPolicy;
import io.vavr.control.Option;

/**
 * A second router, written to be wrong in one chosen way: what must not get past the judge. It
 * splits batches and lowers nothing.
 */
record MutantRouting(Mistake mistake) implements RoutingPolicy {

  /** One way to be wrong. */
  enum Mistake {
    /** Not wrong: shows that nothing but the mistake is caught. */
    NONE,
    /** Forgets that an overriding image adds keys behind the window. */
    DROPS_THE_WINDOW,
    /** Lets the window begin one key later. */
    WINDOW_OFF_BY_ONE,
    /** Takes images without text between them for one. */
    MERGES_TOUCHING_IMAGES,
    /** Counts image positions from the chunk's first query. */
    POSITIONS_FROM_THE_CHUNK,
    /** Holds that a single query never needs child A. */
    SINGLE_QUERY_TO_B,
    /** Refuses a cut image only where a query already shows a difference. */
    CUT_FROM_THE_ROUTE,
    /** Looks for a cut only in images that begin in this step. */
    CUT_FROM_THE_CHUNK,
    /** Sends every query of an image to child A. */
    ANY_IMAGE_QUERY_TO_A,
    /** Looks at a request's first image alone. */
    FIRST_IMAGE_ONLY,
    /** Lets a request without queries have a say. */
    EMPTY_REQUEST_DECIDES,
    /** Treats both clamps alike, also where a window of one key leaves nothing to add. */
    FORGETS_THE_FUTURE_CLAMP
  }

  @Override
  public Route route(LayerGroup group, CommonAttentionMetadata batch) {
    if (mistake != Mistake.CUT_FROM_THE_ROUTE && mistake != Mistake.CUT_FROM_THE_CHUNK) {
      batch.requireWholeImages(group.mask());
    }
    RequestRoutes.Builder routes = RequestRoutes.builder(batch.live());
    int asking = 0;
    for (int r = 0; r < batch.live(); r++) {
      assign(routes, group.mask(), batch, r);
      asking += batch.queryLen(r) > 0 || mistake == Mistake.EMPTY_REQUEST_DECIDES ? 1 : 0;
    }
    int onA = routes.count(Child.A);
    RequestRoutes built = routes.build();
    if (onA == 0) {
      return new Route.ToChildB(built);
    }
    return onA == asking
        ? new Route.ToChildA(built)
        : new Route.SplitByRequest(built, Option.none());
  }

  private void assign(
      RequestRoutes.Builder routes, AttentionMask mask, CommonAttentionMetadata batch, int r) {
    routes.set(r, Child.B, RouteReason.EMPTY);
    if (batch.queryLen(r) == 0) {
      return;
    }
    routes.set(r, Child.B, RouteReason.NO_IMAGE_QUERY);
    int images = mask.seesImages() ? batch.images().count(r) : 0;
    for (int i = 0; i < (mistake == Mistake.FIRST_IMAGE_ONLY ? Math.min(1, images) : images); i++) {
      int from = mistake == Mistake.POSITIONS_FROM_THE_CHUNK ? 0 : batch.firstPosition(r);
      int end = from + batch.queryLen(r) - 1;
      int first = batch.images().first(r, i);
      int last = last(batch.images(), r, i);
      if (mistake == Mistake.CUT_FROM_THE_CHUNK && first >= from && first <= end && last > end) {
        throw BifocalException.ofRequest(ErrorCode.IMAGE_CUT, r, last, end);
      }
      int query = Math.max(first, from);
      if (first > end || last < query) {
        continue;
      }
      int key = key(mask, query, first, last);
      if (key == RequestRoutes.NONE
          || (mistake == Mistake.SINGLE_QUERY_TO_B && batch.queryLen(r) == 1)) {
        routes.set(r, Child.B, RouteReason.MASK_EQUAL);
        continue;
      }
      if (mistake == Mistake.CUT_FROM_THE_ROUTE && query < end && last > end) {
        throw BifocalException.ofRequest(ErrorCode.IMAGE_CUT, r, last, end);
      }
      RouteReason reason =
          key > query ? RouteReason.NEEDS_FUTURE_KEY : RouteReason.NEEDS_KEY_BEHIND_WINDOW;
      routes.set(r, Child.A, reason, query, key);
      return;
    }
  }

  private int last(ImageRanges images, int r, int i) {
    int last = images.last(r, i);
    boolean merges = mistake == Mistake.MERGES_TOUCHING_IMAGES;
    boolean touches = i + 1 < images.count(r) && images.first(r, i + 1) == last + 1;
    return merges && touches ? last(images, r, i + 1) : last;
  }

  private int key(AttentionMask mask, int query, int first, int last) {
    int window = mask.window().getOrElse(Integer.MAX_VALUE);
    int hidden = mistake == Mistake.WINDOW_OFF_BY_ONE ? query - window - 1 : query - window;
    boolean windowHides = mask.window().isDefined() && hidden >= first;
    if (mask.images() == ImageMask.OVERRIDE && windowHides && mistake != Mistake.DROPS_THE_WINDOW) {
      return first;
    }
    boolean clamped = mask.images() == ImageMask.CLAMP_BOTH && window == 1;
    if (clamped && mistake != Mistake.FORGETS_THE_FUTURE_CLAMP) {
      return RequestRoutes.NONE;
    }
    if (query == last && mistake == Mistake.ANY_IMAGE_QUERY_TO_A) {
      return query;
    }
    return query < last ? query + 1 : RequestRoutes.NONE;
  }
}
