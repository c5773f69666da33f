package bifocal.reference;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.TensorView;

/** Keys and values of requests that lie back to back in two tensors. */
final class DenseKeyValues implements KeyValues {
  private final HostTensor k;
  private final HostTensor v;
  private final long[] firstRow;

  private DenseKeyValues(HostTensor k, HostTensor v, long[] firstRow) {
    this.k = k;
    this.v = v;
    this.firstRow = firstRow;
  }

  static DenseKeyValues of(TensorView k, TensorView v, CommonAttentionMetadata batch) {
    long[] firstRow = new long[batch.live() + 1];
    for (int request = 0; request < batch.live(); request++) {
      firstRow[request + 1] = firstRow[request] + batch.seqLen(request);
    }
    requireRows("k", k, firstRow[batch.live()]);
    requireRows("v", v, firstRow[batch.live()]);
    return new DenseKeyValues(HostTensor.over(k), HostTensor.over(v), firstRow);
  }

  private static void requireRows(String name, TensorView tensor, long keys) {
    if (tensor.rank() != 3 || tensor.size(0) < keys) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, name, tensor, "[" + keys + " or more keys, heads, head size]");
    }
  }

  @Override
  public void readKey(int request, int position, int kvHead, float[] key) {
    read(k, firstRow[request] + position, kvHead, key);
  }

  @Override
  public void readValue(int request, int position, int kvHead, float[] value) {
    read(v, firstRow[request] + position, kvHead, value);
  }

  private static void read(HostTensor tensor, long row, int head, float[] into) {
    for (int d = 0; d < into.length; d++) {
      into[d] = tensor.at(row, head, d);
    }
  }
}
