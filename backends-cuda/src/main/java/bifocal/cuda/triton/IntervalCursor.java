package bifocal.cuda.triton;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Keys of single queries under any mask, written down on the way. An image contains its query, so
 * every way of joining images to a mask leaves one interval for each query.
 */
final class IntervalCursor implements KeyCursor {
  private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;

  private final CommonAttentionMetadata batch;
  private final AttentionMask mask;
  private final int left;
  private final int chunk;
  private final MemorySegment lows;
  private final MemorySegment highs;
  private int request;
  private int right;
  private int seqLen;
  private int position;
  private int row;
  private int image;
  private int low;
  private int high;

  /**
   * @param lows smallest key of each q row, inclusive
   * @param highs largest key of each q row, inclusive
   */
  IntervalCursor(
      CommonAttentionMetadata batch, AttentionMask mask, MemorySegment lows, MemorySegment highs) {
    this.batch = batch;
    this.mask = mask;
    this.left = mask.leftWindow();
    this.chunk = mask.chunk().getOrElse(0);
    this.lows = lows;
    this.highs = highs;
  }

  @Override
  public void begin(int of) {
    request = of;
    right = batch.rightWindow(of, mask);
    seqLen = batch.seqLen(of);
    position = batch.firstPosition(of);
    row = batch.queryStart(of);
    image = 0;
  }

  @Override
  public void take(int queries) {
    low = Integer.MAX_VALUE;
    high = -1;
    for (int i = 0; i < queries; i++) {
      int first = first();
      int last = last();
      if (insideImage()) {
        first = firstInImage(first, batch.images().first(request, image));
        last = lastInImage(last, batch.images().last(request, image));
      }
      last = Math.min(last, seqLen - 1);
      lows.setAtIndex(INT, row, first);
      highs.setAtIndex(INT, row, last);
      if (first <= last) {
        low = Math.min(low, first);
        high = Math.max(high, last);
      }
      position++;
      row++;
    }
    low = Math.min(low, high + 1);
  }

  private int first() {
    int byWindow = left < 0 ? 0 : Math.max(0, position - left);
    return chunk == 0 ? byWindow : Math.max(byWindow, Math.floorDiv(position, chunk) * chunk);
  }

  private int last() {
    long byWindow = right < 0 ? seqLen - 1L : Math.max(-1, (long) position + right);
    long byChunk =
        chunk == 0 ? Integer.MAX_VALUE : (Math.floorDiv(position, chunk) + 1L) * chunk - 1;
    return (int) Math.min(Math.min(byWindow, byChunk), Integer.MAX_VALUE);
  }

  private boolean insideImage() {
    if (!mask.seesImages()) {
      return false;
    }
    while (image < batch.images().count(request)
        && batch.images().last(request, image) < position) {
      image++;
    }
    return image < batch.images().count(request)
        && batch.images().first(request, image) <= position;
  }

  private int firstInImage(int first, int imageFirst) {
    return mask.images() == ImageMask.OVERRIDE ? Math.min(first, imageFirst) : first;
  }

  private int lastInImage(int last, int imageLast) {
    int reach =
        switch (mask.images()) {
          case NONE -> last;
          case OVERRIDE, CLAMP_PAST -> imageLast;
          case CLAMP_BOTH ->
              left < 0 ? imageLast : (int) Math.min(imageLast, (long) position + left);
        };
    return Math.max(last, reach);
  }

  @Override
  public int low() {
    return low;
  }

  @Override
  public int high() {
    return high;
  }

  @Override
  public int leftWindow() {
    return -1;
  }

  @Override
  public int rightWindow() {
    return -1;
  }
}
