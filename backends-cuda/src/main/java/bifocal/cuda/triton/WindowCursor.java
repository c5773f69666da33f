package bifocal.cuda.triton;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.layer.AttentionMask;

/** Keys of runs of queries that windows alone decide. */
final class WindowCursor implements KeyCursor {
  private final CommonAttentionMetadata batch;
  private final AttentionMask mask;
  private final int left;
  private int right;
  private int seqLen;
  private long position;
  private int low;
  private int high;

  WindowCursor(CommonAttentionMetadata batch, AttentionMask mask) {
    this.batch = batch;
    this.mask = mask;
    this.left = mask.leftWindow();
  }

  @Override
  public void begin(int request) {
    right = batch.rightWindow(request, mask);
    seqLen = batch.seqLen(request);
    position = batch.firstPosition(request);
  }

  @Override
  public void take(int queries) {
    long last = position + queries - 1;
    low = left < 0 ? 0 : (int) Math.max(0, position - left);
    high = right < 0 ? seqLen - 1 : (int) Math.max(-1, Math.min(last + right, seqLen - 1L));
    position = last + 1;
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
    return left;
  }

  @Override
  public int rightWindow() {
    return right;
  }
}
