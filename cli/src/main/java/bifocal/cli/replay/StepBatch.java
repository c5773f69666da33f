package bifocal.cli.replay;

import bifocal.cli.replay.ContinuousBatching.Scheduled;
import bifocal.core.backend.BatchLimits;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.BlockLease;
import bifocal.core.cache.KvBlocks;
import bifocal.core.layer.LayerGroup;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import io.vavr.collection.HashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * One layer group's blocks and the batches described with them. A request's blocks are leased for
 * all its positions when it is admitted and given back when it ends. Block table and slots lie in
 * memory that is used again in the next step.
 */
final class StepBatch implements AutoCloseable {
  private final LayerGroup group;
  private final KvBlocks blocks;
  private final int columns;
  private final MemorySegment tableMemory;
  private final MemorySegment slotMemory;
  private Map<Integer, BlockLease> leases = HashMap.empty();

  StepBatch(LayerGroup group, KvBlocks blocks, BatchLimits limits, Arena arena) {
    this.group = group;
    this.blocks = blocks;
    this.columns = blocks.spec().blocksFor(limits.maxSeqLen());
    this.tableMemory =
        arena.allocate((long) limits.maxRequests() * columns * Integer.BYTES, Integer.BYTES);
    this.slotMemory = arena.allocate((long) limits.maxQueryTokens() * Long.BYTES, Long.BYTES);
  }

  boolean hasRoomFor(int positions) {
    return blocks.free() >= blocks.spec().blocksFor(positions);
  }

  void admit(int request, int positions) {
    leases = leases.put(request, blocks.lease(blocks.spec().blocksFor(positions)));
  }

  void end(int request) {
    leases.get(request).forEach(BlockLease::close);
    leases = leases.remove(request);
  }

  /** Describes a step to builders. */
  CommonAttentionMetadata describe(Seq<Scheduled> step) {
    int requests = step.size();
    int[] queryStartLoc = new int[requests + 1];
    int[] seqLens = new int[requests];
    int[][] images = new int[requests][];
    boolean[] prefilling = new boolean[requests];
    for (int r = 0; r < requests; r++) {
      Scheduled scheduled = step.get(r);
      queryStartLoc[r + 1] = queryStartLoc[r] + scheduled.count();
      seqLens[r] = scheduled.seqLen();
      images[r] = group.mask().seesImages() ? scheduled.request().images() : new int[0];
      prefilling[r] = !scheduled.decode();
      writeRow(r, queryStartLoc[r], scheduled);
    }
    return CommonAttentionMetadata.builder(
            queryStartLoc,
            seqLens,
            TensorView.ofHost(tableMemory, DType.INT32, requests, columns),
            new SlotMapping(TensorView.ofHost(slotMemory, DType.INT64, queryStartLoc[requests])))
        .images(ImageRanges.of(images, requests))
        .prefilling(prefilling)
        .build();
  }

  private void writeRow(int row, int firstToken, Scheduled scheduled) {
    BlockLease lease = leases.get(scheduled.request().index()).get();
    int blockSize = blocks.spec().blockSize();
    int used = blocks.spec().blocksFor(scheduled.seqLen());
    for (int i = 0; i < columns; i++) {
      tableMemory.setAtIndex(
          ValueLayout.JAVA_INT, (long) row * columns + i, i < used ? lease.block(i) : 0);
    }
    for (int i = 0; i < scheduled.count(); i++) {
      int position = scheduled.first() + i;
      long slot = (long) lease.block(position / blockSize) * blockSize + position % blockSize;
      slotMemory.setAtIndex(ValueLayout.JAVA_LONG, firstToken + i, slot);
    }
  }

  @Override
  public void close() {
    leases.values().forEach(BlockLease::close);
    leases = HashMap.empty();
  }
}
