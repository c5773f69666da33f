package bifocal.cpu.attention;

import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerGroup;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.core.workspace.WorkspaceRegion;
import bifocal.cpu.ffi.HeldMemory;
import bifocal.cpu.kernel.MergeItem;
import bifocal.cpu.kernel.WorkItem;
import bifocal.cpu.raw.RawMemory;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Plans each step's work items in memory leased from the step's workspace. The block table is
 * copied, so what was checked is what the kernels read.
 */
final class CpuMetadataBuilder implements AttentionMetadataBuilder<CpuAttentionMetadata> {
  private static final AtomicLong STAMPS = new AtomicLong(0x6269666f63616cL << 8);
  private static final String SCRATCH = "scratch";
  private static final String PARTIALS = "partials";
  private static final String PACKED = "packed";
  static final long ALIGNMENT = 64;
  private static final long HEADER = 64;

  /** Work that takes less than about 60 µs on one thread stays there. */
  private static final long SMALL_NANOS = 60_000;

  private static final long FLOPS_PER_NANO = 100;
  private static final long BYTES_PER_NANO = 8;

  private final CpuRuntime runtime;
  private final KeyVisibility visibility;
  private final KvCacheSpec cache;
  private final AttentionLayerSpec layer;
  private final KernelSizes sizes;
  private final UncachedKeys uncached;
  private final HeldMemory held = new HeldMemory("the builder of a layer group");

  CpuMetadataBuilder(CpuRuntime runtime, LayerGroup group, KvCacheSpec cache, boolean readsImages) {
    this.runtime = runtime;
    this.layer = group.spec();
    this.visibility = new KeyVisibility(group.mask(), readsImages);
    this.cache = cache;
    this.sizes = KernelSizes.of(runtime.kernels(), layer, cache);
    this.uncached = UncachedKeys.of(layer);
  }

  /** Workspace of a group's largest batch. */
  static WorkspacePlan workspace(
      CpuRuntime runtime, LayerGroup group, KvCacheSpec cache, BatchLimits limits) {
    AttentionLayerSpec layer = group.spec();
    KernelSizes sizes = KernelSizes.of(runtime.kernels(), layer, cache);
    UncachedKeys uncached = UncachedKeys.of(layer);
    long partialRows = partialRows(runtime, layer, limits);
    // A request may come as one run per query token.
    long runs = Math.max(limits.maxRequests(), limits.maxQueryTokens());
    long tiles = runs + Math.ceilDiv(limits.maxQueryTokens(), sizes.queryTile());
    long items = layer.numKvHeads() * tiles + Math.ceilDiv(partialRows, layer.groupSize());
    long tableEntries = (long) limits.maxRequests() * cache.blocksFor(limits.maxSeqLen());
    long stepBytes =
        HEADER
            + aligned(items * WorkItem.BYTES)
            + aligned(partialRows * MergeItem.BYTES)
            + aligned(tableEntries * Integer.BYTES)
            + aligned(2L * limits.maxQueryTokens() * Integer.BYTES)
            + uncached.stepBytes(limits);
    return WorkspacePlan.of(
        stepBytes,
        scratch(SCRATCH, runtime.threads().threads() * sizes.scratchBytes() + ALIGNMENT),
        scratch(PARTIALS, partialRows * partialRowBytes(layer) + ALIGNMENT),
        scratch(PACKED, uncached.packedBytes(limits) + ALIGNMENT));
  }

  @Override
  public CpuAttentionMetadata build(
      StepContext step, LayerGroup group, CommonAttentionMetadata batch) {
    step.launch().requireOwner();
    requireTable(batch.blockTable());
    if (visibility.readsImages()) {
      batch.requireWholeImages(visibility.mask());
    }
    held.begin();
    try {
      Building building = new Building(step, batch);
      held.add(building.partials);
      held.add(batch.blockTable().data());
      held.run(building);
      return building.built();
    } catch (IllegalStateException | WrongThreadException released) {
      throw HeldMemory.refusal("the plan of a step", released);
    } finally {
      held.end();
    }
  }

  @Override
  public void close() {
    held.close();
  }

  /** Plans one step while the workspace and the block table are held. */
  private final class Building implements Runnable {
    private final StepContext step;
    private final CommonAttentionMetadata batch;
    private final MemorySegment partials;
    private @Nullable StepPlan plan;

    private Building(StepContext step, CommonAttentionMetadata batch) {
      this.step = step;
      this.batch = batch;
      this.partials = step.workspace().region(PARTIALS);
    }

    @Override
    public void run() {
      plan = CpuMetadataBuilder.this.plan(step, batch, partials);
    }

    private StepPlan built() {
      return Objects.requireNonNull(plan);
    }
  }

  private StepPlan plan(StepContext step, CommonAttentionMetadata batch, MemorySegment partials) {
    long partialRows = Math.max(0, partials.byteSize() - ALIGNMENT) / partialRowBytes(layer);
    WorkPlan plan =
        new WorkPlan(
            batch,
            visibility,
            new WorkPlan.Shape(
                sizes.queryTile(), layer.numKvHeads(), layer.groupSize(), partialRows));
    boolean intervals = visibility.needsIntervals(batch) || RunsOfARequest.anyFollow(batch);
    MemorySegment intervalMemory =
        step.workspace().lease(intervals ? 2L * batch.tokens() * Integer.BYTES : 0, ALIGNMENT);
    if (intervals) {
      writeIntervals(batch, intervalMemory.address());
    }
    plan.count(intervals ? intervalMemory.address() : 0);
    return place(step, batch, plan, partials, intervals ? intervalMemory.address() : 0);
  }

  private StepPlan place(
      StepContext step,
      CommonAttentionMetadata batch,
      WorkPlan plan,
      MemorySegment partials,
      long intervals) {
    boolean cached = batch.blockTable().size(1) > 0 || !uncached.possible();
    int columns = cached ? cache.blocksFor(batch.maxSeqLen()) : 0;
    int rows = tableRows(batch);
    long itemBytes = aligned(plan.itemCount() * WorkItem.BYTES);
    long mergeBytes = aligned(plan.mergeCount() * MergeItem.BYTES);
    long tableBytes = aligned((long) rows * columns * Integer.BYTES);
    long bytes = HEADER + itemBytes + mergeBytes + tableBytes + uncached.bytes(batch);
    MemorySegment lease = step.workspace().lease(bytes, ALIGNMENT);
    long at = RawMemory.address("plan of a step", lease, 0, bytes);
    long items = at + HEADER;
    long merges = items + itemBytes;
    long table = merges + mergeBytes;
    int largestBlock = cached ? copyTable(batch, plan, table, columns) : -1;
    plan.place(items, merges);
    long stamp = STAMPS.incrementAndGet();
    RawMemory.writeLong(at, stamp);
    return new StepPlan(
        lease,
        stamp,
        batch.live(),
        batch.tokens(),
        largestBlock,
        new StepPlan.BlockTable(table, columns),
        uncached.place(batch, table + tableBytes),
        step.workspace().region(PACKED),
        intervals,
        intervals == 0 ? 0 : intervals + 4L * batch.tokens(),
        partials,
        plan.partialRows(),
        plan.itemCount(),
        merges,
        plan.mergeCount(),
        workers(plan),
        new AttendJob(runtime.kernels(), items, scratch(step), sizes.scratchBytes()));
  }

  private long scratch(StepContext step) {
    MemorySegment region = step.workspace().region(SCRATCH);
    long bytes = runtime.threads().threads() * sizes.scratchBytes() + ALIGNMENT;
    return aligned(RawMemory.address("scratch of the CPU kernels", region, 0, bytes));
  }

  private int workers(WorkPlan plan) {
    long width = (long) layer.headSize() + layer.headSizeV();
    long compute = 2 * plan.visiblePairs() * layer.numHeads() * width / FLOPS_PER_NANO;
    long read = plan.visibleKeys() * layer.numKvHeads() * width * 2 / BYTES_PER_NANO;
    return Math.max(compute, read) < SMALL_NANOS ? 1 : runtime.threads().threads();
  }

  private static void requireTable(TensorView table) {
    if (!table.device().hostReadable()) {
      throw BifocalException.of(
          ErrorCode.DEVICE_MISMATCH, "block table", table.device(), "memory of the host");
    }
    if (table.size(1) > 1 && table.stride(1) != 1) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "stride of the block table's columns", table.stride(1), 1);
    }
    RawMemory.address("block table", table.data(), 0, 0);
  }

  private static int tableRows(CommonAttentionMetadata batch) {
    int rows = 0;
    for (int r = 0; r < batch.live(); r++) {
      rows = Math.max(rows, batch.blockTableRow(r) + 1);
    }
    return rows;
  }

  /** Copies the blocks that hold visible keys; returns the largest block, -1 when there is none. */
  private int copyTable(CommonAttentionMetadata batch, WorkPlan plan, long to, int columns) {
    TensorView table = batch.blockTable();
    int largest = -1;
    for (int r = 0; r < batch.live(); r++) {
      int last = plan.lastKey(r);
      int firstBlock = plan.firstKey(r) / cache.blockSize();
      int row = batch.blockTableRow(r);
      if (row >= table.size(0)) {
        throw BifocalException.of(
            ErrorCode.SHAPE_MISMATCH, "rows of the block table", table.size(0), row + 1);
      }
      if (last / cache.blockSize() >= table.size(1) && last >= 0) {
        throw BifocalException.of(
            ErrorCode.BLOCK_TABLE_TOO_SHORT,
            "request " + r + " with " + batch.seqLen(r) + " keys",
            table.size(1) + " blocks",
            cache.blocksFor(last + 1) + " blocks");
      }
      long from = table.address() + row * table.stride(0) * Integer.BYTES;
      long rowTo = to + (long) row * columns * Integer.BYTES;
      for (int b = firstBlock; (long) b * cache.blockSize() <= last; b++) {
        int block = RawMemory.readInt(from + 4L * b);
        if (block < 0) {
          throw BifocalException.of(
              ErrorCode.BLOCK_OUT_OF_RANGE,
              "block " + b + " of request " + r,
              block,
              "a block of the cache");
        }
        RawMemory.writeInt(rowTo + 4L * b, block);
        largest = Math.max(largest, block);
      }
    }
    return largest;
  }

  private void writeIntervals(CommonAttentionMetadata batch, long to) {
    for (int r = 0; r < batch.live(); r++) {
      int rightWindow = batch.rightWindow(r, visibility.mask());
      int image = 0;
      for (int i = 0; i < batch.queryLen(r); i++) {
        int position = batch.firstPosition(r) + i;
        int first = Math.max(visibility.windowFirst(position), visibility.chunkFirst(position));
        int last =
            Math.min(
                visibility.windowLast(position, rightWindow, batch.seqLen(r)),
                visibility.chunkLast(position));
        while (image < batch.images().count(r) && batch.images().last(r, image) < position) {
          image++;
        }
        if (image < batch.images().count(r)
            && batch.images().first(r, image) <= position
            && visibility.readsImages()
            && visibility.mask().seesImages()) {
          first = visibility.imageQueryFirst(first, batch.images().first(r, image));
          last = visibility.imageQueryLast(position, last, batch.images().last(r, image));
        }
        long row = (long) batch.queryStart(r) + i;
        RawMemory.writeInt(to + 4 * row, first);
        RawMemory.writeInt(to + 4 * (batch.tokens() + row), Math.min(last, batch.seqLen(r) - 1));
      }
    }
  }

  private static long partialRows(
      CpuRuntime runtime, AttentionLayerSpec layer, BatchLimits limits) {
    int threads = runtime.threads().threads();
    if (threads == 1
        || layer.numKvHeads() >= 2 * threads
        || limits.maxSeqLen() <= WorkPlan.SPLIT_KEYS) {
      return 0;
    }
    long requests = Math.min(limits.maxRequests(), 64);
    return requests * WorkPlan.MOST_SPLITS * layer.numHeads();
  }

  private static long partialRowBytes(AttentionLayerSpec layer) {
    return (layer.headSizeV() + 1L) * Float.BYTES;
  }

  private static WorkspaceRegion scratch(String name, long bytes) {
    return new WorkspaceRegion(name, bytes, WorkspaceRegion.State.SCRATCH);
  }

  static long aligned(long bytes) {
    return Math.ceilDiv(bytes, ALIGNMENT) * ALIGNMENT;
  }
}
