package bifocal.cpu.attention;

import bifocal.core.backend.BatchLimits;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvScales;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionType;
import bifocal.cpu.attention.StepPlan.BlockTable;
import bifocal.cpu.attention.StepPlan.PackedKeys;
import bifocal.cpu.cache.CpuPackedLayout;
import bifocal.cpu.raw.RawMemory;

/**
 * Where layers that need no cache put their keys for the length of a forward: blocks of the cache
 * layout in scratch, each request's one after another.
 *
 * @param possible whether a layer may come without a cache
 * @param spec contract of the scratch blocks
 */
record UncachedKeys(boolean possible, KvCacheSpec spec) {
  private static final int BLOCK_SIZE = 32;

  static UncachedKeys of(AttentionLayerSpec layer) {
    boolean possible =
        layer.type() == AttentionType.ENCODER || layer.type() == AttentionType.ENCODER_ONLY;
    return new UncachedKeys(
        possible,
        new KvCacheSpec(
            CpuPackedLayout.INSTANCE,
            KvCacheDtype.AUTO.resolve(layer.dtype()),
            BLOCK_SIZE,
            layer.numKvHeads(),
            layer.headSize(),
            layer.headSizeV(),
            KvScales.ONE));
  }

  /** Scratch for the largest batch. */
  long packedBytes(BatchLimits limits) {
    long blocks = limits.maxRequests() + (long) limits.maxQueryTokens() / BLOCK_SIZE;
    return possible ? Math.multiplyExact(blocks, spec.blockBytes()) : 0;
  }

  /** Leased memory for the largest batch. */
  long stepBytes(BatchLimits limits) {
    return possible
        ? bytes(limits.maxQueryTokens(), limits.maxRequests(), spec.blocksFor(limits.maxSeqLen()))
        : 0;
  }

  /** Leased memory for a batch. */
  long bytes(CommonAttentionMetadata batch) {
    return possible ? bytes(keys(batch), rows(batch), spec.blocksFor(batch.maxSeqLen())) : 0;
  }

  /** Writes slots and block table of a batch at an address. */
  PackedKeys place(CommonAttentionMetadata batch, long at) {
    if (!possible) {
      return PackedKeys.NONE;
    }
    long keys = keys(batch);
    int columns = spec.blocksFor(batch.maxSeqLen());
    long table = at + slotBytes(keys);
    long key = 0;
    int block = 0;
    for (int r = 0; r < batch.live(); r++) {
      long row = table + (long) batch.blockTableRow(r) * columns * Integer.BYTES;
      for (int t = 0; t < batch.seqLen(r); t++) {
        RawMemory.writeLong(at + Long.BYTES * key++, (long) block * BLOCK_SIZE + t);
      }
      for (int b = 0; b < spec.blocksFor(batch.seqLen(r)); b++) {
        RawMemory.writeInt(row + (long) b * Integer.BYTES, block++);
      }
    }
    return new PackedKeys(keys, at, new BlockTable(table, columns), block);
  }

  private static long keys(CommonAttentionMetadata batch) {
    long keys = 0;
    for (int r = 0; r < batch.live(); r++) {
      keys += batch.seqLen(r);
    }
    return keys;
  }

  private static long rows(CommonAttentionMetadata batch) {
    long rows = 0;
    for (int r = 0; r < batch.live(); r++) {
      rows = Math.max(rows, batch.blockTableRow(r) + 1L);
    }
    return rows;
  }

  private static long bytes(long keys, long rows, int columns) {
    return slotBytes(keys) + CpuMetadataBuilder.aligned(rows * columns * Integer.BYTES);
  }

  private static long slotBytes(long keys) {
    return CpuMetadataBuilder.aligned(keys * Long.BYTES);
  }
}
