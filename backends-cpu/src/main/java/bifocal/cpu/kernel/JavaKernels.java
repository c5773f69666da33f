package bifocal.cpu.kernel;

import org.jspecify.annotations.Nullable;

/** The kernels in Java: one way through the tiles, with the inner loops of a {@link TileMath}. */
public final class JavaKernels implements CpuKernels {
  /** Rows of queries that share one pass over the keys. */
  private static final int ROWS = 100;

  private final TileMath math;
  private final ThreadLocal<@Nullable Tile> tiles = new ThreadLocal<>();

  /** Kernels over some inner loops. */
  public JavaKernels(TileMath math) {
    this.math = math;
  }

  @Override
  public String name() {
    return math.name();
  }

  @Override
  public int queryTile(AttendParams params) {
    return Math.max(1, ROWS / params.groupSize());
  }

  @Override
  public long scratchBytes(AttendParams params, int queryCount) {
    return TileScratch.bytes(params, queryCount, math);
  }

  @Override
  public void attend(AttendParams params, long items, long count, long scratch) {
    Tile tile = tiles.get();
    if (tile == null) {
      tile = new Tile(math, params);
      tiles.set(tile);
    }
    for (long i = 0; i < count; i++) {
      tile.attend(params, items + i * WorkItem.BYTES, scratch);
    }
  }

  @Override
  public void merge(AttendParams params, long items, long count) {
    for (long i = 0; i < count; i++) {
      Merging.merge(params, items + i * MergeItem.BYTES);
    }
  }

  @Override
  public void writeKv(KvWriteParams params, long first, long count) {
    for (long token = first; token < first + count; token++) {
      long slot = params.slot(token);
      if (slot >= 0) {
        KvWriting.token(params, token, slot);
      }
    }
  }

  @Override
  public String toString() {
    return name();
  }
}
