package bifocal.composite;

import bifocal.core.backend.AttentionOutput;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.ValueLayout;

/**
 * The row of a query is the query plus the slot numbers of the keys it sees. All numbers are small
 * integers, so that sums are exact in any order.
 */
final class SummingKernel {
  private final SummingBackend.Metadata metadata;
  private final CommonAttentionMetadata batch;
  private final AttentionMask mask;
  private final int blockSize;

  private SummingKernel(SummingBackend.Metadata metadata, int blockSize) {
    this.metadata = metadata;
    this.batch = metadata.batch();
    this.mask = metadata.group().mask();
    this.blockSize = blockSize;
  }

  static void run(
      SummingBackend.Metadata metadata,
      TensorView q,
      AttentionOutput output,
      int blockSize,
      boolean indirect) {
    SummingKernel kernel = new SummingKernel(metadata, blockSize);
    if (!indirect) {
      kernel.requireOneRun();
    }
    for (int r = 0; r < kernel.batch.live(); r++) {
      for (int i = 0; i < kernel.batch.queryLen(r); i++) {
        kernel.row(r, i, q, output);
      }
    }
  }

  private void requireOneRun() {
    for (int r = 0; r < batch.live(); r++) {
      if (batch.blockTableRow(r) != r) {
        throw new AssertionError(metadata.owner() + ": blocks of request " + r + " lie elsewhere");
      }
      if (r > 0 && batch.queryStart(r) != batch.queryStart(r - 1) + batch.queryLen(r - 1)) {
        throw new AssertionError(metadata.owner() + ": a gap before request " + r);
      }
    }
  }

  private void row(int request, int i, TensorView q, AttentionOutput output) {
    int row = batch.queryStart(request) + i;
    long seen = 0;
    int position = batch.firstPosition(request) + i;
    for (int key = 0; key < batch.seqLen(request); key++) {
      seen += visible(request, position, key) ? slot(request, key) : 0;
    }
    for (int head = 0; head < q.size(1); head++) {
      for (int d = 0; d < q.size(2); d++) {
        set(output.out(), at(q, row, head, d) + seen, row, head, d);
      }
      int h = head;
      long sum = seen;
      output.lse().forEach(lse -> set(lse, sum + h, row, h, 0));
    }
  }

  private boolean visible(int request, int position, int key) {
    int right = batch.rightWindow(request, mask);
    boolean future = right < 0 || key <= position + right;
    boolean past = mask.leftWindow() < 0 || key >= position - mask.leftWindow();
    boolean together = mask.seesImages() && sameImage(request, position, key);
    return mask.images() == ImageMask.OVERRIDE
        ? (future && past) || together
        : past && (future || together);
  }

  private boolean sameImage(int request, int position, int key) {
    boolean same = false;
    for (int i = 0; i < batch.images().count(request); i++) {
      int first = batch.images().first(request, i);
      int last = batch.images().last(request, i);
      same |= first <= position && position <= last && first <= key && key <= last;
    }
    return same;
  }

  private long slot(int request, int key) {
    TensorView table = batch.blockTable();
    long index = batch.blockTableRow(request) * table.stride(0) + key / blockSize * table.stride(1);
    int block = table.data().get(ValueLayout.JAVA_INT, 4 * index);
    return (long) block * blockSize + key % blockSize;
  }

  private static float at(TensorView tensor, int row, int head, int d) {
    return tensor.data().get(ValueLayout.JAVA_FLOAT, 4 * offset(tensor, row, head, d));
  }

  private static void set(TensorView tensor, float value, int row, int head, int d) {
    tensor.data().set(ValueLayout.JAVA_FLOAT, 4 * offset(tensor, row, head, d), value);
  }

  private static long offset(TensorView tensor, int row, int head, int d) {
    return row * tensor.stride(0)
        + head * tensor.stride(1)
        + (tensor.rank() > 2 ? d * tensor.stride(2) : 0);
  }
}
