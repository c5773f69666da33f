package bifocal.composite;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.batch.SlotMapping;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/** Batches whose requests lie back to back and own blocks 1, 2, 3 and so on. */
final class TestBatch {
  static final int BLOCK_SIZE = 4;

  private final int[] queryLens;
  private final int[] seqLens;
  private ImageRanges images = ImageRanges.NONE;
  private int live;

  private TestBatch(int[] queryLens, int[] seqLens) {
    this.queryLens = queryLens;
    this.seqLens = seqLens;
    this.live = queryLens.length;
  }

  static TestBatch of(int[] queryLens, int... seqLens) {
    return new TestBatch(queryLens, seqLens);
  }

  /** One request of text, so many queries at the end of so many keys. */
  static CommonAttentionMetadata text(int queryLen, int seqLen) {
    return of(new int[] {queryLen}, seqLen).build();
  }

  /** One request with one image. */
  static CommonAttentionMetadata image(int queryLen, int seqLen, int first, int last) {
    return of(new int[] {queryLen}, seqLen).images(new int[][] {{first, last}}).build();
  }

  static int[] lens(int... values) {
    return values;
  }

  TestBatch images(int[]... byRequest) {
    images = ImageRanges.of(byRequest, live);
    return this;
  }

  TestBatch live(int count) {
    live = count;
    return this;
  }

  CommonAttentionMetadata build() {
    int requests = queryLens.length;
    int[] starts = new int[requests + 1];
    int longest = 1;
    for (int r = 0; r < requests; r++) {
      starts[r + 1] = starts[r] + queryLens[r];
      longest = Math.max(longest, Math.ceilDiv(seqLens[r], BLOCK_SIZE));
    }
    TensorView table = blockTable(requests, longest);
    return CommonAttentionMetadata.builder(starts, seqLens, table, slots(table))
        .live(live)
        .images(images)
        .build();
  }

  private TensorView blockTable(int requests, int width) {
    MemorySegment table = Arena.ofAuto().allocate(4L * Math.max(1, requests * width), 4);
    int block = 1;
    for (int r = 0; r < requests; r++) {
      for (int i = 0; i < Math.ceilDiv(seqLens[r], BLOCK_SIZE); i++) {
        table.setAtIndex(ValueLayout.JAVA_INT, (long) r * width + i, block++);
      }
    }
    return TensorView.ofHost(table, DType.INT32, requests, width);
  }

  private SlotMapping slots(TensorView table) {
    int tokens = Arrays.stream(queryLens).sum();
    MemorySegment slots = Arena.ofAuto().allocate(8L * Math.max(tokens, 1), 8);
    int row = 0;
    for (int r = 0; r < queryLens.length; r++) {
      for (int position = seqLens[r] - queryLens[r]; position < seqLens[r]; position++) {
        long at = r * table.stride(0) + position / BLOCK_SIZE;
        int block = table.data().getAtIndex(ValueLayout.JAVA_INT, at);
        slots.setAtIndex(
            ValueLayout.JAVA_LONG, row++, (long) block * BLOCK_SIZE + position % BLOCK_SIZE);
      }
    }
    return new SlotMapping(TensorView.ofHost(slots, DType.INT64, tokens));
  }
}
