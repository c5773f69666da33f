package bifocal.cpu.attention;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;

/**
 * Which keys a query sees under a declared mask. An image contains its query, so every way of
 * joining images to a mask leaves one interval of keys per query.
 *
 * @param mask the declared mask
 * @param readsImages whether images join the mask; otherwise they are somebody else's business
 */
record KeyVisibility(AttentionMask mask, boolean readsImages) {

  /** Whether windows alone do not say which keys a batch's queries see. */
  boolean needsIntervals(CommonAttentionMetadata batch) {
    return readsImages
        && (mask.chunk().isDefined() || (mask.seesImages() && !batch.images().isEmpty()));
  }

  /** Smallest key that the query at a position sees without images. */
  int windowFirst(long position) {
    int left = mask.leftWindow();
    return left < 0 ? 0 : Math.clamp(position - left, 0, Integer.MAX_VALUE);
  }

  /** Largest existing key that the query at a position sees without images, -1 for none. */
  int windowLast(long position, int rightWindow, int seqLen) {
    return rightWindow < 0 ? seqLen - 1 : (int) Math.clamp(position + rightWindow, -1, seqLen - 1L);
  }

  /** First key of a query's chunk. */
  int chunkFirst(int position) {
    return mask.chunk().isDefined() ? position - position % mask.chunk().get() : 0;
  }

  /** Last key of a query's chunk. */
  int chunkLast(int position) {
    return mask.chunk().isDefined()
        ? (int) Math.min(Integer.MAX_VALUE, (long) chunkFirst(position) + mask.chunk().get() - 1)
        : Integer.MAX_VALUE;
  }

  /** First visible key of a query inside an image that begins at {@code imageFirst}. */
  int imageQueryFirst(int first, int imageFirst) {
    return mask.images() == ImageMask.OVERRIDE ? Math.min(first, imageFirst) : first;
  }

  /** Last visible key of a query inside an image that ends at {@code imageLast}. */
  int imageQueryLast(int position, int last, int imageLast) {
    int reach =
        switch (mask.images()) {
          case NONE -> last;
          case OVERRIDE, CLAMP_PAST -> imageLast;
          case CLAMP_BOTH ->
              mask.leftWindow() < 0
                  ? imageLast
                  : (int) Math.min(imageLast, (long) position + mask.leftWindow());
        };
    return Math.max(last, reach);
  }
}
