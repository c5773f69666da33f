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
import bifocal.cuda.pack.PackRefusal;
import bifocal.cuda.pack.Specialisation.Engine;
import io.vavr.control.Validation;
import java.lang.foreign.MemorySegment;

/**
 * Plans each step: tiles, key intervals and the block table are put together in pinned memory and
 * copied to the device by one copy.
 */
final class TritonBuilder implements AttentionMetadataBuilder<TritonMetadata> {
  /** Batches that may be captured. */
  static final GraphSupport GRAPHS = GraphSupport.UNIFORM_BATCH;

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
  private final Validation<PackRefusal, KernelEntry.Tile> prefillTile;
  private final KernelEntry.Tile decodeTile;
  private final Splits splits;
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
    this.prefillTile = prefillTile(device, kernels);
    LoadedKernel decode = device.kernel(kernels.decode());
    this.decodeTile = decode.tile();
    this.splits = Splits.of(device, decode);
    this.staging = new StepStaging(device.context(), "the builder");
    this.route = "triton-" + variant.kernels().label();
  }

  private static Validation<PackRefusal, KernelEntry.Tile> prefillTile(
      TritonDevice device, LayerKernels kernels) {
    return kernels.prefill(device.pack()).map(wanted -> device.kernel(wanted).tile());
  }

  /** Workspace of a layer's largest batch. */
  static WorkspacePlan workspace(
      TritonDevice device,
      TritonVariant variant,
      AttentionLayerSpec.Dense layer,
      KvCacheSpec cache,
      BatchLimits limits) {
    LayerKernels kernels = LayerKernels.of(device.pack(), variant, layer, cache);
    KernelEntry.Tile decode = device.kernel(kernels.decode()).tile();
    KernelEntry.Tile prefill = prefillTile(device, kernels).getOrElse(decode);
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

  /**
   * {@inheritDoc}
   *
   * @throws BifocalException also {@code NATIVE_MISSING} when a request has more queries than a
   *     decode kernel takes and the pack has no prefill kernel
   */
  @Override
  public TritonMetadata build(StepContext step, LayerGroup group, CommonAttentionMetadata batch) {
    step.launch().requireOwner();
    CudaLaunchContext launch = CudaLaunchContext.of(step.launch());
    boolean intervals = variant == TritonVariant.GENERAL;
    if (intervals) {
      batch.requireWholeImages(mask);
    }
    boolean uniform = capturable(batch);
    int rows = uniform ? paddedRows(batch) : batch.tokens();
    long intervalBytes = intervals ? aligned((long) rows * Integer.BYTES) : 0;
    BlockTableCopy table = BlockTableCopy.of(batch, cache, uniform);
    long tilesAt = 2 * intervalBytes + aligned(table.bytes());
    StepStaging.Slot slot = staging.take(tilesAt + mostTileBytes(batch, rows));
    MemorySegment host = slot.host();
    StepTiles tiles = tiles(batch, cursor(batch, host, intervalBytes));
    int largestBlock = table.write(tiles, host, 2 * intervalBytes);
    TileOrder prefill = prefillOrder(batch, tiles, uniform);
    TileOrder decode = decodeOrder(batch, tiles, uniform);
    tiles.prefill().write(prefill.order(), prefill.count(), host, tilesAt);
    long decodeAt = tilesAt + aligned((long) prefill.count() * TileList.BYTES);
    tiles.decode().write(decode.order(), decode.count(), host, decodeAt);
    long bytes = decodeAt + aligned((long) decode.count() * TileList.BYTES);
    MemorySegment lease = step.workspace().lease(bytes, ALIGNMENT);
    if (batch.live() > 0 && bytes > 0) {
      slot.upload(launch.queue(), lease);
    }
    MemorySegment partials = step.workspace().region(PARTIALS);
    // A captured launch keeps its addresses, so they must not depend on which rows are live.
    int firstRow = uniform ? 0 : tiles.firstDecodeRow();
    int decodeRows = uniform ? rows : tiles.decodeRows();
    int splits = splits(table, decode.count(), decodeRows, partials.byteSize());
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
        new TritonStep.Tiles(at + tilesAt, prefill.count(), prefill.perUnit()),
        new TritonStep.Tiles(at + decodeAt, decode.count(), decode.perUnit()),
        splits,
        partialOut(partials, firstRow, splits),
        partialLse(partials, firstRow, decodeRows, splits),
        uniform ? key(batch, rows, prefill, splits) : GraphKey.EAGER);
  }

  /** Whether a batch may be captured: equally many queries, and room for those of padding. */
  private static boolean capturable(CommonAttentionMetadata batch) {
    return GRAPHS.covers(batch)
        && !batch.hasRuns()
        && (batch.maxQueryLen() == 1 || uniformRows(batch) <= batch.slots().tokens());
  }

  private static long uniformRows(CommonAttentionMetadata batch) {
    return (long) batch.requests() * batch.maxQueryLen();
  }

  private static int paddedRows(CommonAttentionMetadata batch) {
    return Math.max(batch.tokens(), (int) uniformRows(batch));
  }

  private GraphKey key(CommonAttentionMetadata batch, int rows, TileOrder prefill, int splits) {
    String kernels = prefill.count() > 0 ? "-prefill-" + prefill.perUnit() : "-decode-" + splits;
    return new GraphKey(route + kernels, batch.requests(), rows, true);
  }

  private StepTiles tiles(CommonAttentionMetadata batch, KeyCursor cursor) {
    int decodeTokens = decodeTile.tokens();
    StepTiles tiles = StepTiles.of(batch, cursor, prefillTokens(), decodeTokens);
    if (prefillTile.isInvalid() && !tiles.prefill().isEmpty()) {
      throw prefillTile.getError().asException();
    }
    return tiles;
  }

  private int prefillTokens() {
    return prefillTile.getOrElse(decodeTile).tokens();
  }

  /**
   * Tiles in the order in which they are launched.
   *
   * @param order numbers of tiles
   * @param count tiles, padding behind them included
   * @param perUnit tiles that belong together
   */
  private record TileOrder(int[] order, int count, int perUnit) {}

  private TileOrder prefillOrder(CommonAttentionMetadata batch, StepTiles tiles, boolean uniform) {
    int perUnit = inPairs(batch, tiles) ? 2 : 1;
    int[] order = perUnit == 2 ? tiles.prefill().inPairs() : tiles.prefill().byFallingCost();
    if (!uniform || order.length == 0) {
      return new TileOrder(order, order.length, perUnit);
    }
    int each = Math.ceilDiv(batch.maxQueryLen(), prefillTokens());
    return new TileOrder(order, batch.requests() * Math.ceilDiv(each, perUnit) * perUnit, perUnit);
  }

  private static TileOrder decodeOrder(
      CommonAttentionMetadata batch, StepTiles tiles, boolean uniform) {
    int[] order = tiles.decode().byFallingCost();
    return new TileOrder(order, uniform && order.length > 0 ? batch.requests() : order.length, 1);
  }

  private KeyCursor cursor(CommonAttentionMetadata batch, MemorySegment host, long bytes) {
    return switch (variant) {
      case GENERAL ->
          new IntervalCursor(batch, mask, host.asSlice(0, bytes), host.asSlice(bytes, bytes));
      case CAUSAL -> new WindowCursor(batch, mask);
    };
  }

  private long mostTileBytes(CommonAttentionMetadata batch, int rows) {
    long prefill = batch.requests() + (long) rows / prefillTokens();
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

  private int splits(BlockTableCopy table, int decodeCount, int decodeRows, long partialBytes) {
    long outputs = (long) Math.max(1, decodeRows) * layer.numHeads();
    long longest = table.columns() * cache.blockSize();
    return splits.of(
        (long) decodeCount * layer.numKvHeads(),
        longest,
        decodeTile.keys(),
        (partialBytes - ALIGNMENT) / partialBytes(layer) / outputs);
  }

  private long partialOut(MemorySegment partials, int firstRow, int splits) {
    long before = (long) firstRow * layer.numHeads() * splits;
    return partials.address() - before * layer.headSize() * Float.BYTES;
  }

  private long partialLse(MemorySegment partials, int firstRow, int rows, int splits) {
    long before = (long) firstRow * layer.numHeads() * splits;
    long outputs = (long) rows * layer.numHeads() * splits;
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
