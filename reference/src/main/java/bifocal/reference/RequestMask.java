package bifocal.reference;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import java.util.Arrays;

/**
 * Which keys the queries of one request see, decided cell by cell from the definitions of the
 * mask's parts. Nothing here is clever: kernels and routers are judged by it.
 *
 * <p>The queries of a request stand at its last positions. Where queries and keys are different
 * sequences they are aligned at their ends in the same way, so a query's position may be negative.
 */
public final class RequestMask {
  private static final int TEXT = -1;

  private final AttentionMask mask;
  private final int rightWindow;
  private final int keys;
  private final int[] image;

  private RequestMask(AttentionMask mask, int rightWindow, int keys, int[] image) {
    this.mask = mask;
    this.rightWindow = rightWindow;
    this.keys = keys;
    this.image = image;
  }

  /** The mask of a live request: the declared one, with the request's images and right window. */
  public static RequestMask of(CommonAttentionMetadata batch, int request, AttentionMask mask) {
    int keys = batch.seqLen(request);
    return new RequestMask(
        mask, batch.rightWindow(request, mask), keys, images(batch, request, keys));
  }

  private static int[] images(CommonAttentionMetadata batch, int request, int keys) {
    int[] image = new int[keys];
    Arrays.fill(image, TEXT);
    for (int i = 0; i < batch.images().count(request); i++) {
      int last = Math.min(batch.images().last(request, i), keys - 1);
      for (int at = Math.max(batch.images().first(request, i), 0); at <= last; at++) {
        image[at] = i;
      }
    }
    return image;
  }

  /** Whether the query at a position sees a key. */
  public boolean sees(int query, int key) {
    if (key < 0 || key >= keys) {
      return false;
    }
    boolean order = inOrder(query, key);
    boolean past = withinPast(query, key);
    boolean chunk = inChunk(query, key);
    boolean image = inOneImage(query, key);
    return switch (mask.images()) {
      case NONE -> order && past && chunk;
      case OVERRIDE -> (order && past && chunk) || image;
      case CLAMP_PAST -> past && chunk && (order || image);
      case CLAMP_BOTH -> past && withinFuture(query, key) && chunk && (order || image);
    };
  }

  /** The key is not later than the query, or not later than its right window allows. */
  private boolean inOrder(int query, int key) {
    return rightWindow < 0 || (long) key - query <= rightWindow;
  }

  /** The key is the query's own or one of the W - 1 before it. */
  private boolean withinPast(int query, int key) {
    return mask.window().isEmpty() || (long) query - key < mask.window().get();
  }

  private boolean withinFuture(int query, int key) {
    return mask.window().isEmpty() || (long) key - query < mask.window().get();
  }

  private boolean inChunk(int query, int key) {
    return mask.chunk().isEmpty()
        || Math.floorDiv(query, mask.chunk().get()) == Math.floorDiv(key, mask.chunk().get());
  }

  private boolean inOneImage(int query, int key) {
    return mask.images() != ImageMask.NONE
        && query >= 0
        && query < keys
        && image[query] != TEXT
        && image[query] == image[key];
  }
}
