package bifocal.core.batch;

import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/** Batches for tests, without anything that a test does not say. */
public final class Batches {
  private Batches() {}

  /** Prefix sums of query lengths. */
  public static int[] starts(int... queryLens) {
    int[] starts = new int[queryLens.length + 1];
    for (int r = 0; r < queryLens.length; r++) {
      starts[r + 1] = starts[r] + queryLens[r];
    }
    return starts;
  }

  /** A batch of so many queries and keys by request, over a table of null blocks. */
  public static CommonAttentionMetadata.Builder of(int[] queryLens, int[] seqLens) {
    int[] starts = starts(queryLens);
    return CommonAttentionMetadata.builder(
        starts, seqLens, table(Math.max(queryLens.length, 1), 1), slots(starts[queryLens.length]));
  }

  /** Requests whose whole sequence is scheduled. */
  public static CommonAttentionMetadata prefills(int... queryLens) {
    return of(queryLens, queryLens.clone()).build();
  }

  /** A block table of zeros. */
  public static TensorView table(int rows, int columns) {
    return TensorView.ofHost(
        MemorySegment.ofArray(new int[rows * columns]), DType.INT32, rows, columns);
  }

  /** A block table of these rows. */
  public static TensorView table(int[]... rows) {
    int columns = rows[0].length;
    int[] all = new int[rows.length * columns];
    for (int r = 0; r < rows.length; r++) {
      System.arraycopy(rows[r], 0, all, r * columns, columns);
    }
    return TensorView.ofHost(MemorySegment.ofArray(all), DType.INT32, rows.length, columns);
  }

  /** Slots of tokens that are not written. */
  public static SlotMapping slots(int tokens) {
    long[] slots = new long[tokens];
    Arrays.fill(slots, SlotMapping.PADDING);
    return slots(slots);
  }

  /** These slots. */
  public static SlotMapping slots(long... slots) {
    return new SlotMapping(
        TensorView.ofHost(MemorySegment.ofArray(slots), DType.INT64, slots.length));
  }
}
