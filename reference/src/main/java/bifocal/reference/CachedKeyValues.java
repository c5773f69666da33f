package bifocal.reference;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheView;
import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.ValueLayout;

/** Keys and values in a paged cache in host memory. */
final class CachedKeyValues implements KeyValues {
  private final KvCacheView cache;
  private final KvCacheView.TokenAccess tokens;
  private final CommonAttentionMetadata batch;

  private CachedKeyValues(KvCacheView cache, CommonAttentionMetadata batch) {
    this.cache = cache;
    this.tokens = cache.tokens(cache.spec().layout());
    this.batch = batch;
  }

  /** Checks every block the live requests reach. */
  static CachedKeyValues of(KvCacheView cache, CommonAttentionMetadata batch) {
    cache.requireOpen();
    if (!batch.blockTable().device().hostReadable()) {
      throw BifocalException.of(
          ErrorCode.DEVICE_MISMATCH, "block table", batch.blockTable().device(), Device.HOST);
    }
    CachedKeyValues found = new CachedKeyValues(cache, batch);
    for (int request = 0; request < batch.live(); request++) {
      found.requireBlocks(request);
    }
    return found;
  }

  private void requireBlocks(int request) {
    int blocks = cache.spec().blocksFor(batch.seqLen(request));
    if (blocks > batch.blockTable().size(1)) {
      throw BifocalException.of(
          ErrorCode.BLOCK_TABLE_TOO_SHORT,
          "block table of request " + request,
          batch.blockTable().size(1) + " blocks",
          blocks + " blocks for " + batch.seqLen(request) + " keys");
    }
    for (int i = 0; i < blocks; i++) {
      int block = block(request, i);
      if (block < 0 || block >= cache.numBlocks()) {
        throw BifocalException.of(
            ErrorCode.BLOCK_OUT_OF_RANGE,
            "block " + i + " of request " + request,
            block,
            "0.." + (cache.numBlocks() - 1));
      }
    }
  }

  @Override
  public void readKey(int request, int position, int kvHead, float[] key) {
    tokens.readKey(slot(request, position), kvHead, key);
  }

  @Override
  public void readValue(int request, int position, int kvHead, float[] value) {
    tokens.readValue(slot(request, position), kvHead, value);
  }

  private long slot(int request, int position) {
    int size = cache.spec().blockSize();
    return (long) block(request, position / size) * size + position % size;
  }

  private int block(int request, int index) {
    TensorView table = batch.blockTable();
    long element = batch.blockTableRow(request) * table.stride(0) + index * table.stride(1);
    return table.data().get(ValueLayout.JAVA_INT_UNALIGNED, element * Integer.BYTES);
  }
}
