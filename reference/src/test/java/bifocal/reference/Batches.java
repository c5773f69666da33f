package bifocal.reference;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.SlotMapping;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Small tensors and batches written out by hand. */
final class Batches {
  private Batches() {}

  /** Requests given as pairs of query_len and seq_len, without a usable cache. */
  static CommonAttentionMetadata.Builder of(int... queryAndSeqLens) {
    int requests = queryAndSeqLens.length / 2;
    int[] starts = new int[requests + 1];
    int[] seqLens = new int[requests];
    for (int r = 0; r < requests; r++) {
      starts[r + 1] = starts[r] + queryAndSeqLens[2 * r];
      seqLens[r] = queryAndSeqLens[2 * r + 1];
    }
    return CommonAttentionMetadata.builder(
        starts, seqLens, ints(new int[requests][0]), new SlotMapping(longs()));
  }

  static TensorView floats(long[] shape, float... values) {
    MemorySegment data = Arena.ofAuto().allocateFrom(ValueLayout.JAVA_FLOAT, values);
    return TensorView.ofHost(data, DType.FP32, shape);
  }

  static TensorView ints(int[]... rows) {
    int width = rows.length == 0 ? 0 : rows[0].length;
    MemorySegment data = Arena.ofAuto().allocate(ValueLayout.JAVA_INT, (long) rows.length * width);
    for (int r = 0; r < rows.length; r++) {
      for (int i = 0; i < width; i++) {
        data.setAtIndex(ValueLayout.JAVA_INT, (long) r * width + i, rows[r][i]);
      }
    }
    return TensorView.ofHost(data, DType.INT32, rows.length, width);
  }

  static TensorView longs(long... values) {
    MemorySegment data = Arena.ofAuto().allocateFrom(ValueLayout.JAVA_LONG, values);
    return TensorView.ofHost(data, DType.INT64, values.length);
  }

  static long[] shape(long... sizes) {
    return sizes;
  }
}
