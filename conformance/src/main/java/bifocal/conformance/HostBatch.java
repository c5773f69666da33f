package bifocal.conformance;

import bifocal.conformance.BatchPlan.Image;
import bifocal.conformance.BatchPlan.Request;
import bifocal.conformance.memory.TestDevice;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheSpec;
import java.util.Arrays;

/**
 * A batch in the arrays of a host engine. What describes padding is rubbish: nobody may read it.
 *
 * @param plan the batch
 * @param rows rows of q, those of no request included
 * @param queryStartLoc first row of each request, then the end, then rubbish
 * @param seqLens keys of each request, then rubbish
 * @param images bounds of each request's images, then rubbish
 * @param blockTable blocks of each request, then rubbish
 * @param slots slot of each row, -1 for rows of no request
 */
record HostBatch(
    BatchPlan plan,
    int rows,
    int[] queryStartLoc,
    int[] seqLens,
    int[][] images,
    int[][] blockTable,
    long[] slots) {

  static HostBatch of(BatchPlan plan, int lead, int tail, KvCacheSpec spec, Blocks blocks) {
    int live = plan.requests().size();
    int requests = live + plan.padding();
    int width = spec.blocksFor(plan.requests().map(Request::seqLen).max().getOrElse(0)) + 1;
    int rows = lead + plan.queryTokens() + tail;
    int[] starts = new int[requests + 1];
    int[] seqLens = new int[requests];
    int[][] images = new int[requests][];
    int[][] table = new int[requests][width];
    long[] slots = new long[rows];
    Arrays.fill(slots, SlotMapping.PADDING);
    starts[0] = lead;
    for (int r = 0; r < live; r++) {
      Request request = plan.requests().get(r);
      starts[r + 1] = starts[r] + request.queryLen();
      seqLens[r] = request.seqLen();
      images[r] = bounds(request);
      int needed = spec.blocksFor(request.seqLen());
      System.arraycopy(blocks.of(request.sequence()), 0, table[r], 0, needed);
      for (int i = 0; i < request.queryLen() && !plan.independentKeys(); i++) {
        int position = request.seqLen() - request.queryLen() + i;
        slots[starts[r] + i] = blocks.slot(request.sequence(), position);
      }
    }
    for (int r = live; r < requests; r++) {
      starts[r + 1] = r % 2 == 0 ? -17 : Integer.MAX_VALUE;
      seqLens[r] = r % 2 == 0 ? Integer.MAX_VALUE : Integer.MIN_VALUE;
      images[r] = new int[] {0, Integer.MAX_VALUE, -5, -9};
      Arrays.fill(table[r], r % 2 == 0 ? -1 : Integer.MAX_VALUE);
    }
    return new HostBatch(plan, rows, starts, seqLens, images, table, slots);
  }

  private static int[] bounds(Request request) {
    int[] bounds = new int[2 * request.images().size()];
    for (int i = 0; i < request.images().size(); i++) {
      Image image = request.images().get(i);
      bounds[2 * i] = image.first();
      bounds[2 * i + 1] = image.last();
    }
    return bounds;
  }

  /** First row of a live request. */
  int queryStart(int request) {
    return queryStartLoc[request];
  }

  /** The batch as backends get it, tables on the device. */
  CommonAttentionMetadata describe(TestDevice device) {
    int width = blockTable.length == 0 ? 1 : blockTable[0].length;
    int live = plan.requests().size();
    CommonAttentionMetadata.Builder builder =
        CommonAttentionMetadata.builder(
                queryStartLoc,
                seqLens,
                Tensors.ints(device, blockTable, width),
                new SlotMapping(Tensors.longs(device, slots)))
            .live(live)
            .images(ImageRanges.of(images, live));
    return (plan.independentKeys() ? builder.independentKeys() : builder).build();
  }
}
