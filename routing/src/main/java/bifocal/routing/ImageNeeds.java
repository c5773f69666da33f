package bifocal.routing;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.route.Child;
import bifocal.core.route.LoweredRuns;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.RouteReason;

/**
 * What the images of one batch ask of a child that knows none, in closed form. Positions are
 * absolute, image ranges inclusive, and every image with a scheduled query is whole.
 *
 * <p>An image only ever adds keys to what its queries see: later keys of the image and, under
 * {@code OVERRIDE}, those of its keys that the window hides. If any of its scheduled queries gets a
 * key, the first one does, so one query per image decides.
 */
final class ImageNeeds {
  private static final int NONE = RequestRoutes.NONE;
  private static final int UNLIMITED = -1;
  private static final int NO_RUN = -2;

  private final ImageMask mode;
  private final int leftWindow;
  private final boolean blind;
  private final CommonAttentionMetadata batch;
  private final ImageRanges images;
  private final Lowering lowering;

  ImageNeeds(AttentionMask mask, CommonAttentionMetadata batch, Lowering lowering) {
    this.mode = mask.images();
    this.leftWindow = mask.leftWindow();
    // Queries of another sequence have no position among the keys' images.
    this.blind = !mask.seesImages() || batch.independentKeys();
    this.batch = batch;
    this.images = batch.images();
    this.lowering = lowering;
  }

  /** Writes down where a request would go by itself, and why. */
  RouteReason assign(RequestRoutes.Builder routes, int request) {
    int image = firstChanging(request, 0);
    if (image == NONE) {
      RouteReason reason = unchanged(request);
      routes.set(request, Child.B, reason);
      return reason;
    }
    int query = firstQuery(request, image);
    int key = addedKey(query, images.first(request, image), images.last(request, image));
    RouteReason reason = changed(request, query, key);
    Child child = reason == RouteReason.LOWERED ? Child.B : Child.A;
    routes.set(request, child, reason, query, key);
    return reason;
  }

  private RouteReason unchanged(int request) {
    if (batch.queryLen(request) == 0) {
      return RouteReason.EMPTY;
    }
    return hasImageQuery(request) ? RouteReason.MASK_EQUAL : RouteReason.NO_IMAGE_QUERY;
  }

  private RouteReason changed(int request, int query, int key) {
    if (lowering != Lowering.OFF) {
      return lowerable(request) ? RouteReason.LOWERED : RouteReason.NOT_LOWERABLE;
    }
    return key > query ? RouteReason.NEEDS_FUTURE_KEY : RouteReason.NEEDS_KEY_BEHIND_WINDOW;
  }

  /** Adds the fewest runs that give a request its mask. */
  void addRuns(LoweredRuns.Builder runs, int request) {
    int from = batch.firstPosition(request);
    for (int image = firstChanging(request, 0);
        image != NONE;
        image = firstChanging(request, image + 1)) {
      int query = firstQuery(request, image);
      if (from < query) {
        runs.run(from, query - 1, 0);
      }
      int last = images.last(request, image);
      runs.run(query, last, rightWindow(query, images.first(request, image), last));
      from = last + 1;
    }
    if (from < batch.seqLen(request)) {
      runs.run(from, batch.seqLen(request) - 1, 0);
    }
  }

  private boolean lowerable(int request) {
    for (int image = firstChanging(request, 0);
        image != NONE;
        image = firstChanging(request, image + 1)) {
      int query = firstQuery(request, image);
      int first = images.first(request, image);
      if (rightWindow(query, first, images.last(request, image)) == NO_RUN) {
        return false;
      }
    }
    return true;
  }

  /** The first image from {@code image} on that changes what a scheduled query sees. */
  private int firstChanging(int request, int image) {
    if (blind || batch.queryLen(request) == 0) {
      return NONE;
    }
    for (int i = image; i < images.count(request); i++) {
      if (isScheduled(request, i)
          && addedKey(firstQuery(request, i), images.first(request, i), images.last(request, i))
              != NONE) {
        return i;
      }
    }
    return NONE;
  }

  private boolean hasImageQuery(int request) {
    for (int i = 0; !blind && i < images.count(request); i++) {
      if (isScheduled(request, i)) {
        return true;
      }
    }
    return false;
  }

  private boolean isScheduled(int request, int image) {
    return images.first(request, image) < batch.seqLen(request)
        && images.last(request, image) >= batch.firstPosition(request);
  }

  private int firstQuery(int request, int image) {
    return Math.max(images.first(request, image), batch.firstPosition(request));
  }

  /** The smallest key that the image adds to what a query of it sees. */
  private int addedKey(int query, int first, int last) {
    return switch (mode) {
      case NONE -> NONE;
      case OVERRIDE -> exceedsWindow(query - first) ? first : laterKey(query, last);
      case CLAMP_PAST -> laterKey(query, last);
      case CLAMP_BOTH -> exceedsWindow(1) ? NONE : laterKey(query, last);
    };
  }

  private static int laterKey(int query, int last) {
    return query < last ? query + 1 : NONE;
  }

  /**
   * The right window with which a non-causal run from {@code query} to the image's end gives each
   * of its queries exactly its keys: everything from the left window up to the image's last key, or
   * as far ahead as {@code CLAMP_BOTH} lets it see.
   *
   * @return {@link #NO_RUN} when there is none
   */
  private int rightWindow(int query, int first, int last) {
    if (lowering == Lowering.OFF) {
      return NO_RUN;
    }
    return switch (mode) {
      case NONE -> NO_RUN;
      // The last query, always scheduled, sees the image's first key past its left window.
      case OVERRIDE -> exceedsWindow(last - first) ? NO_RUN : UNLIMITED;
      case CLAMP_PAST -> UNLIMITED;
      case CLAMP_BOTH -> exceedsWindow(last - query) ? boundedRun() : UNLIMITED;
    };
  }

  private int boundedRun() {
    return lowering == Lowering.BOTH_WINDOWS ? leftWindow : NO_RUN;
  }

  private boolean exceedsWindow(int distance) {
    return leftWindow >= 0 && distance > leftWindow;
  }
}
