package bifocal.cuda.flashinfer;

import bifocal.core.layer.AttentionLayerSpec;
import bifocal.cuda.flashinfer.ModuleKey.Engine;

/**
 * Most bytes that plans and partial outputs of a layer take, from how the modules divide work.
 *
 * @param layer the layer
 * @param multiprocessors of the device
 */
record WorkspaceBytes(AttentionLayerSpec.Dense layer, int multiprocessors) {
  private static final long ALIGNMENT = 256;

  /** Fewest rows of a tile, the heads of a group counted. */
  private static final int SMALL_TILE = 16;

  /** Rows of a tile of FA3. */
  private static final int FA3_TILE = 128;

  /** Tiles a head beyond which FA3 schedules all heads alike. */
  private static final long FA3_TILES = 4096;

  /** Lists of FA3 with a number for each tile. */
  private static final int FA3_LISTS = 7;

  /** Blocks a multiprocessor that FA2 divides keys for. */
  private static final int FA2_BLOCKS = 2;

  /** Most blocks a multiprocessor of the decode kernels. */
  private static final int DECODE_BLOCKS = 16;

  /** Rows whose sums XQA keeps together. */
  private static final int SUM_ROWS = 32;

  /** Bytes of a plan. */
  long plan(ModuleKey key, long rows, long entries) {
    return switch (key) {
      case ModuleKey.Prefill prefill ->
          aligned(prefill.engine() == Engine.FA3 ? fa3(rows, entries) : fa2(rows, entries));
      case ModuleKey.Decode decode ->
          aligned(16 * (entries + (long) DECODE_BLOCKS * multiprocessors) + 4096);
      case ModuleKey.Xqa xqa -> ALIGNMENT;
    };
  }

  private long fa2(long rows, long entries) {
    long tiles = Math.ceilDiv(rows * layer.groupSize(), (long) SMALL_TILE) + entries;
    long divided = Math.max(tiles, (long) FA2_BLOCKS * multiprocessors);
    return 16 * divided + 8 * (entries + rows) + 4096;
  }

  private long fa3(long rows, long entries) {
    long tiles = Math.ceilDiv(rows, (long) FA3_TILE) + entries;
    long works = Math.max(Math.min(tiles, FA3_TILES) * layer.numHeads(), tiles);
    return (long) FA3_LISTS * Integer.BYTES * works + 4L * multiprocessors + 4096;
  }

  /** Bytes of partial outputs, of up to so many requests that can be captured. */
  long partials(int requests) {
    long blocks = Math.ceilDiv((long) FA2_BLOCKS * multiprocessors, layer.numKvHeads());
    long eager = blocks * tile();
    long captured =
        Math.max(
                blocks,
                Math.ceilDiv(
                    2 * captured(requests) * (layer.groupSize() + SMALL_TILE), (long) SMALL_TILE))
            * SMALL_TILE;
    long rows = Math.ceilDiv(Math.max(eager, captured), (long) layer.groupSize());
    long cores = Math.ceilDiv((long) DECODE_BLOCKS * multiprocessors, layer.numKvHeads());
    long most = Math.max(rows, cores);
    return aligned(layer.numHeads() * most * (layer.headSize() + 1L) * Float.BYTES) + ALIGNMENT;
  }

  /** Bytes of partial outputs of XQA: of each program, sums and maxima of rows, and the rows. */
  long singlePartials() {
    long sums = 2L * SUM_ROWS * Math.ceilDiv(layer.groupSize(), SUM_ROWS) * Float.BYTES;
    long rows = (long) layer.groupSize() * layer.headSize() * layer.dtype().bytes();
    return aligned(singlePrograms() * (sums + rows) + sums + rows);
  }

  /** Programs that XQA divides keys for. */
  int singlePrograms() {
    return multiprocessors;
  }

  /** Bytes of outputs of so many requests. */
  long singleRows(int requests) {
    return aligned((long) requests * layer.numHeads() * layer.headSize() * layer.dtype().bytes());
  }

  /** Bytes of XQA's counters, one for each request and KV head. */
  long singleCounters(int requests) {
    return aligned((long) requests * layer.numKvHeads() * Integer.BYTES);
  }

  /** Requests of a captured batch whose keys are divided at all. */
  private long captured(int requests) {
    return divides(requests)
        ? requests
        : Math.ceilDiv((long) FA2_BLOCKS * multiprocessors, layer.numKvHeads());
  }

  /** Whether a captured batch leaves multiprocessors idle unless its keys are divided. */
  boolean divides(int requests) {
    return (long) requests * layer.numKvHeads() <= (long) FA2_BLOCKS * multiprocessors;
  }

  /** Most rows of a tile of FA2, the heads of a group counted. */
  private int tile() {
    return layer.headSize() >= 512 ? 32 : layer.headSize() >= 256 ? 64 : 128;
  }

  static long aligned(long bytes) {
    return Math.ceilDiv(bytes, ALIGNMENT) * ALIGNMENT;
  }
}
