package bifocal.cuda.triton;

import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.graph.GraphKey;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.core.workspace.WorkspaceRegion;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.pack.KernelEntry;
import bifocal.cuda.pack.Specialisation.Engine;
import java.lang.foreign.MemorySegment;

/**
 * Plans each step: tiles, key intervals and the block table are put together in pinned memory and
 * copied to the device by one copy.
 */
final class TritonBuilder implements AttentionMetadataBuilder<TritonMetadata> {
  /** Batches that may be captured. */
  static final GraphSupport GRAPHS = GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE;

  private static final String PARTIALS = "partials";
  private static final long ALIGNMENT = 256;

  /** Keys and values beyond this do not stay in the device's cache while tiles read them. */
  private static final long SECOND_LEVEL_CACHE = 50L << 20;

  private final TritonDevice device;
  private final TritonVariant variant;
  private final AttentionLayerSpec.Dense layer;
  private final AttentionMask mask;
  private final KvCacheSpec cache;
  private final boolean hopper;
  private final boolean widens;
  private final KernelEntry.Tile prefillTile;
  private final KernelEntry.Tile decodeTile;
  private final StepStaging staging;
  private final String route;

  TritonBuilder(
      TritonDevice device,
      TritonVariant variant,
      AttentionLayerSpec.Dense layer,
      KvCacheSpec cache) {
    this.device = device;
    this.variant = variant;
    this.layer = layer;
    this.mask = layer.mask();
    this.cache = cache;
    LayerKernels kernels = LayerKernels.of(device.pack(), variant, layer, cache);
    this.hopper = kernels.prefill().engine() == Engine.HOPPER;
    this.widens = kernels.decode().cache().quantised();
    this.prefillTile = device.kernel(kernels.prefill()).tile();
    this.decodeTile = device.kernel(kernels.decode()).tile();
    this.staging = new StepStaging(device.context());
    this.route = "triton-" + variant.kernels().label() + "-decode-";
  }

  /** Workspace of a layer's largest batch. */
  static WorkspacePlan workspace(
      TritonDevice device,
      TritonVariant variant,
      AttentionLayerSpec.Dense layer,
      KvCacheSpec cache,
      BatchLimits limits) {
    LayerKernels kernels = LayerKernels.of(device.pack(), variant, layer, cache);
    KernelEntry.Tile prefill = device.kernel(kernels.prefill()).tile();
    KernelEntry.Tile decode = device.kernel(kernels.decode()).tile();
    // A request may come as one run per query token, and every pair of tiles have padding.
    long runs = Math.max(limits.maxRequests(), limits.maxQueryTokens());
    long tiles = 2 * (runs + Math.ceilDiv(limits.maxQueryTokens(), prefill.tokens())) + runs;
    long rows = Math.max(limits.maxRequests(), limits.maxQueryTokens());
    long table = limits.maxRequests() * (cache.blocksFor(limits.maxSeqLen()) + 1L);
    long stepBytes =
        aligned(tiles * TileList.BYTES)
            + aligned(table * Integer.BYTES)
            + 2 * aligned(rows * Integer.BYTES)
            + 4 * ALIGNMENT;
    long partials = Splits.partials(device.multiprocessors(), decode.rows());
    return WorkspacePlan.of(
        stepBytes,
        new WorkspaceRegion(
            PARTIALS, partials * partialBytes(layer) + ALIGNMENT, WorkspaceRegion.State.SCRATCH));
  }

  @Override
  public TritonMetadata build(StepContext step, LayerGroup group, CommonAttentionMetadata batch) {
    step.launch().requireOwner();
    CudaLaunchContext launch = CudaLaunchContext.of(step.launch());
    boolean intervals = variant == TritonVariant.GENERAL;
    if (intervals) {
      batch.requireWholeImages(mask);
    }
    boolean uniform = GRAPHS.covers(batch) && !batch.hasRuns();
    int rows = Math.max(batch.tokens(), uniform ? batch.requests() : 0);
    long intervalBytes = intervals ? aligned((long) rows * Integer.BYTES) : 0;
    BlockTableCopy table = BlockTableCopy.of(batch, cache, uniform);
    long tilesAt = 2 * intervalBytes + aligned(table.bytes());
    long most = tilesAt + mostTileBytes(batch);
    StepStaging.Slot slot = staging.take(most);
    MemorySegment host = slot.host();
    StepTiles tiles =
        StepTiles.of(
            batch, cursor(batch, host, intervalBytes), prefillTile.tokens(), decodeTile.tokens());
    int largestBlock = table.write(tiles, host, 2 * intervalBytes);
    int perUnit = inPairs(batch, tiles) ? 2 : 1;
    int[] prefillOrder = perUnit == 2 ? tiles.prefill().inPairs() : tiles.prefill().byFallingCost();
    int[] decodeOrder = tiles.decode().byFallingCost();
    int decodeCount = uniform ? batch.requests() : decodeOrder.length;
    tiles.prefill().write(prefillOrder, prefillOrder.length, host, tilesAt);
    long decodeAt = tilesAt + aligned((long) prefillOrder.length * TileList.BYTES);
    tiles.decode().write(decodeOrder, decodeCount, host, decodeAt);
    long bytes = decodeAt + aligned((long) decodeCount * TileList.BYTES);
    MemorySegment lease = step.workspace().lease(bytes, ALIGNMENT);
    if (batch.live() > 0 && bytes > 0) {
      slot.upload(launch.queue(), lease);
    }
    MemorySegment partials = step.workspace().region(PARTIALS);
    int splits = splits(table, tiles, decodeCount, partials.byteSize());
    long at = lease.address();
    return new TritonStep(
        step.workspace(),
        variant,
        batch.tokens(),
        largestBlock,
        table.address(at + 2 * intervalBytes),
        table.stride(),
        at,
        at + intervalBytes,
        new TritonStep.Tiles(at + tilesAt, prefillOrder.length, perUnit),
        new TritonStep.Tiles(at + decodeAt, decodeCount, 1),
        splits,
        partialOut(partials, tiles, splits),
        partialLse(partials, tiles, splits),
        uniform
            ? new GraphKey(route + splits, batch.requests(), batch.requests(), true)
            : GraphKey.EAGER);
  }

  private KeyCursor cursor(CommonAttentionMetadata batch, MemorySegment host, long bytes) {
    return switch (variant) {
      case GENERAL ->
          new IntervalCursor(batch, mask, host.asSlice(0, bytes), host.asSlice(bytes, bytes));
      case CAUSAL -> new WindowCursor(batch, mask);
    };
  }

  private long mostTileBytes(CommonAttentionMetadata batch) {
    long prefill = batch.live() + (long) batch.tokens() / prefillTile.tokens();
    return aligned((2 * prefill + 2) * TileList.BYTES)
        + aligned((long) Math.max(1, batch.requests()) * TileList.BYTES);
  }

  /** Whether several sequences do not fit the device's cache, and there is work for everyone. */
  private boolean inPairs(CommonAttentionMetadata batch, StepTiles tiles) {
    if (!hopper || (long) tiles.prefill().size() * layer.numKvHeads() <= device.multiprocessors()) {
      return false;
    }
    long keys = 0;
    int sequences = 0;
    int longest = 0;
    for (int r = 0; r < batch.live(); r++) {
      // Runs of one request lie side by side over one row; the last of them reaches farthest.
      boolean another = r == 0 || batch.blockTableRow(r) != batch.blockTableRow(r - 1);
      sequences += another ? 1 : 0;
      longest = another ? batch.seqLen(r) : Math.max(longest, batch.seqLen(r));
      boolean last = r + 1 == batch.live() || batch.blockTableRow(r + 1) != batch.blockTableRow(r);
      keys += last ? longest : 0;
    }
    long bytesOfKey = cache.blockBytes() / cache.blockSize();
    return sequences > 1 && keys * bytesOfKey > SECOND_LEVEL_CACHE;
  }

  private int splits(BlockTableCopy table, StepTiles tiles, int decodeCount, long partialBytes) {
    long outputs = (long) Math.max(1, tiles.decodeRows()) * layer.numHeads();
    long longest = table.columns() * cache.blockSize();
    return Splits.of(
        (long) decodeCount * layer.numKvHeads(),
        device.multiprocessors(),
        widens,
        longest,
        (partialBytes - ALIGNMENT) / partialBytes(layer) / outputs);
  }

  private long partialOut(MemorySegment partials, StepTiles tiles, int splits) {
    long before = (long) tiles.firstDecodeRow() * layer.numHeads() * splits;
    return partials.address() - before * layer.headSize() * Float.BYTES;
  }

  private long partialLse(MemorySegment partials, StepTiles tiles, int splits) {
    long before = (long) tiles.firstDecodeRow() * layer.numHeads() * splits;
    long outputs = (long) tiles.decodeRows() * layer.numHeads() * splits;
    return partials.address()
        + aligned(outputs * layer.headSize() * Float.BYTES)
        - before * Float.BYTES;
  }

  private static long partialBytes(AttentionLayerSpec.Dense layer) {
    return (layer.headSize() + 1L) * Float.BYTES;
  }

  private static long aligned(long bytes) {
    return Math.ceilDiv(bytes, ALIGNMENT) * ALIGNMENT;
  }

  @Override
  public void close() {
    staging.close();
  }
}
