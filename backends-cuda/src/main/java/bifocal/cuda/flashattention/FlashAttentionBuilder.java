package bifocal.cuda.flashattention;

import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerGroup;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.core.workspace.WorkspaceRegion;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.flashattention.FlashAttentionStep.Call;
import bifocal.cuda.triton.StepStaging;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/**
 * Lists each step's runs, once for all layers of a group: those that see no later keys for one
 * call, those that see all keys until their end for another. The lists are put together in pinned
 * memory and copied to the device by one copy.
 */
final class FlashAttentionBuilder implements AttentionMetadataBuilder<FlashAttentionMetadata> {
  /** More keys than any sequence has, and far from the end of int. */
  static final int UNBOUNDED = 1 << 29;

  private static final int UNKNOWN = -1;
  private static final String SUMS = "sums";
  private static final long ALIGNMENT = 256;
  private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

  private final AttentionLayerSpec.Dense layer;
  private final KvCacheSpec cache;
  private final StepStaging staging;
  private final int leftWindow;

  FlashAttentionBuilder(ForwardDevice device, AttentionLayerSpec.Dense layer, KvCacheSpec cache) {
    this.layer = layer;
    this.cache = cache;
    this.leftWindow = layer.mask().leftWindow();
    this.staging = new StepStaging(device.context(), "the builder of a layer group");
  }

  /** Workspace of a layer's largest batch. */
  static WorkspacePlan workspace(
      AttentionLayerSpec.Dense layer, KvCacheSpec cache, BatchLimits limits) {
    // A request may come as one run per query token.
    long runs = Math.max(limits.maxRequests(), limits.maxQueryTokens());
    long ints = runs * (3L + Math.max(1, cache.blocksFor(limits.maxSeqLen()))) + 2;
    long sums = (long) limits.maxQueryTokens() * layer.numHeads() * Float.BYTES;
    return WorkspacePlan.of(
        aligned(ints * Integer.BYTES),
        new WorkspaceRegion(SUMS, Math.max(1, sums), WorkspaceRegion.State.SCRATCH));
  }

  private static long aligned(long bytes) {
    return Math.ceilDiv(bytes, ALIGNMENT) * ALIGNMENT;
  }

  @Override
  public FlashAttentionMetadata build(
      StepContext step, LayerGroup group, CommonAttentionMetadata batch) {
    step.launch().requireOwner();
    CudaLaunchContext launch = CudaLaunchContext.of(step.launch());
    requirePlannable(launch, batch);
    List<Runs> lists = lists(batch);
    TensorView sums = sums(step, launch, batch.tokens());
    if (lists.isEmpty()) {
      return new FlashAttentionStep(step.workspace(), batch.tokens(), UNKNOWN, List.of(), sums);
    }
    long ints = lists.stream().mapToLong(this::ints).sum();
    long bytes = aligned(ints * Integer.BYTES);
    StepStaging.Slot slot = staging.take(bytes);
    MemorySegment lists32 = step.workspace().lease(bytes, ALIGNMENT);
    boolean onHost = batch.blockTable().device().hostReadable();
    int largest = onHost ? 0 : UNKNOWN;
    List<Call> calls = new ArrayList<>();
    long at = 0;
    for (Runs runs : lists) {
      largest = Math.max(largest, write(runs, slot.host(), at, onHost));
      calls.add(call(runs, lists32, at, launch.device()));
      at += ints(runs);
    }
    slot.upload(launch.queue(), lists32);
    if (!onHost) {
      copyBlocks(launch, lists, lists32);
    }
    if (calls.size() > 1) {
      launch.queue().prepareFork();
    }
    return new FlashAttentionStep(
        step.workspace(), batch.tokens(), largest, List.copyOf(calls), sums);
  }

  private static void requirePlannable(CudaLaunchContext launch, CommonAttentionMetadata batch) {
    if (launch.queue().capturing()) {
      throw BifocalException.of(
              ErrorCode.NOT_CAPTURABLE, "plan of a step", "a stream that captures", "one that runs")
          .withRemedy("build the step before the capture begins");
    }
    if (batch.independentKeys()) {
      throw BifocalException.of(
          ErrorCode.UNSUPPORTED,
          "keys of another sequence",
          "encoder-decoder attention",
          "queries that are the last of their keys");
    }
    TensorView table = batch.blockTable();
    if (table.size(1) > 1 && table.stride(1) != 1) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "stride of the block table's columns", table.stride(1), 1);
    }
  }

  /** Runs that see no later keys, then runs that see all until their end; no empty list. */
  private List<Runs> lists(CommonAttentionMetadata batch) {
    int[] causal = new int[batch.live()];
    int[] full = new int[batch.live()];
    int causals = 0;
    int fulls = 0;
    for (int r = 0; r < batch.live(); r++) {
      if (batch.queryLen(r) == 0) {
        continue;
      }
      int right = batch.rightWindow(r, layer.mask());
      if (right > 0) {
        throw BifocalException.ofRequest(
            ErrorCode.UNSUPPORTED,
            r,
            "right window " + right,
            "no later keys, or all until the end of the run");
      }
      // A single query is the last of its keys, and sees none beyond itself in any case.
      if (right < 0 && batch.queryLen(r) > 1) {
        full[fulls++] = r;
      } else {
        causal[causals++] = r;
      }
    }
    List<Runs> lists = new ArrayList<>();
    if (causals > 0) {
      lists.add(Runs.of(batch, causal, causals, leftWindow, false));
    }
    if (fulls > 0) {
      lists.add(Runs.of(batch, full, fulls, leftWindow, true));
    }
    return lists;
  }

  private TensorView sums(StepContext step, CudaLaunchContext launch, int tokens) {
    return TensorView.of(
        step.workspace().region(SUMS), DType.FP32, launch.device(), tokens, layer.numHeads());
  }

  private long ints(Runs runs) {
    return runs.size() * (3L + runs.mostBlocks(cache.blockSize())) + 1;
  }

  private static long usedAt(Runs runs, long at) {
    return at + runs.size() + 1L;
  }

  private static long keysAt(Runs runs, long at) {
    return usedAt(runs, at) + runs.size();
  }

  private static long blocksAt(Runs runs, long at) {
    return keysAt(runs, at) + runs.size();
  }

  /** Writes a list; returns the largest block, -1 when the host cannot know. */
  private int write(Runs runs, MemorySegment to, long at, boolean onHost) {
    int largest = UNKNOWN;
    for (int run = 0; run < runs.size(); run++) {
      set(to, at + run, runs.start(run));
      set(to, usedAt(runs, at) + run, runs.queries(run));
      set(to, keysAt(runs, at) + run, runs.keys(run));
      requireBlocks(runs, run);
      if (onHost) {
        largest = Math.max(largest, writeBlocks(runs, run, to, at));
      }
    }
    int last = runs.size() - 1;
    set(to, at + runs.size(), runs.start(last) + runs.queries(last));
    return largest;
  }

  private void requireBlocks(Runs runs, int run) {
    TensorView table = runs.batch().blockTable();
    int needed = runs.blocks(run, cache.blockSize());
    if (needed > table.size(1) || runs.tableRow(run) >= table.size(0)) {
      throw BifocalException.of(
          ErrorCode.BLOCK_TABLE_TOO_SHORT,
          "row " + runs.tableRow(run) + " of the block table",
          table,
          needed + " blocks of " + cache.blockSize() + " tokens");
    }
  }

  /** Only blocks with visible keys are read and checked; all others become block 0. */
  private int writeBlocks(Runs runs, int run, MemorySegment to, long at) {
    TensorView table = runs.batch().blockTable();
    int columns = runs.mostBlocks(cache.blockSize());
    int first = runs.firstBlock(run, cache.blockSize());
    int end = runs.blocks(run, cache.blockSize());
    long row = runs.tableRow(run) * table.stride(0);
    int largest = 0;
    for (int i = 0; i < columns; i++) {
      int block = 0;
      if (i >= first && i < end) {
        block = table.data().get(INT, (row + i) * Integer.BYTES);
        if (block < 0) {
          throw BifocalException.of(
              ErrorCode.BLOCK_OUT_OF_RANGE,
              "block " + i + " in row " + runs.tableRow(run) + " of the block table",
              block,
              "a block of the cache");
        }
      }
      set(to, blocksAt(runs, at) + (long) run * columns + i, block);
      largest = Math.max(largest, block);
    }
    return largest;
  }

  private static void set(MemorySegment to, long index, int value) {
    to.set(INT, index * Integer.BYTES, value);
  }

  /** Rows of a table on the device, which are read unchecked. */
  private void copyBlocks(CudaLaunchContext launch, List<Runs> lists, MemorySegment to) {
    long at = 0;
    for (Runs runs : lists) {
      TensorView table = runs.batch().blockTable();
      long columns = runs.mostBlocks(cache.blockSize());
      for (int run = 0; run < runs.size(); run++) {
        launch.copy(
            table.data(),
            runs.tableRow(run) * table.stride(0) * Integer.BYTES,
            to,
            (blocksAt(runs, at) + run * columns) * Integer.BYTES,
            (long) runs.blocks(run, cache.blockSize()) * Integer.BYTES);
      }
      at += ints(runs);
    }
  }

  private Call call(Runs runs, MemorySegment lists, long at, Device place) {
    int columns = runs.mostBlocks(cache.blockSize());
    return new Call(
        ForwardKey.of(layer, cache.blockSize(), runs.later()),
        leftWindow < 0 ? UNBOUNDED : leftWindow,
        runs.later() ? UNBOUNDED : 0,
        ints(lists, place, at, runs.size() + 1L),
        ints(lists, place, usedAt(runs, at), runs.size()),
        ints(lists, place, keysAt(runs, at), runs.size()),
        ints(lists, place, blocksAt(runs, at), runs.size(), columns));
  }

  private static TensorView ints(MemorySegment lists, Device place, long at, long... shape) {
    return TensorView.of(lists.asSlice(at * Integer.BYTES), DType.INT32, place, shape);
  }

  @Override
  public void close() {
    staging.close();
  }
}
