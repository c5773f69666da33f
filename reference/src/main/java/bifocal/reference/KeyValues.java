package bifocal.reference;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.MemorySegment;

/**
 * Where the reference finds keys and values: a cache, dense tensors, or whatever a caller can
 * compute them from.
 */
public interface KeyValues {
  /** Reads one key of a live request into {@code key}, {@code headSize} numbers. */
  void readKey(int request, int position, int kvHead, float[] key);

  /** Reads one value of a live request into {@code value}, {@code headSizeV} numbers. */
  void readValue(int request, int position, int kvHead, float[] value);

  /**
   * Keys and values of a batch's requests in a cache that the host can read, found by the block
   * table.
   */
  static KeyValues cached(KvCacheView cache, CommonAttentionMetadata batch) {
    return CachedKeyValues.of(cache, batch);
  }

  /**
   * Keys and values in no cache: {@code seqLen} rows of each live request, back to back.
   *
   * @param k {@code [keys, numKvHeads, headSize]}
   * @param v {@code [keys, numKvHeads, headSizeV]}
   */
  static KeyValues dense(TensorView k, TensorView v, CommonAttentionMetadata batch) {
    return DenseKeyValues.of(k, v, batch);
  }

  /**
   * Keys and values as they are after a cache of some contract has stored them; the same ones where
   * the contract keeps numbers of their type as they are.
   *
   * @param exact as they were before
   * @param type of the numbers before
   * @param scratch host memory of one block, which is written
   */
  static KeyValues stored(
      KeyValues exact, DType type, KvCacheSpec contract, MemorySegment scratch) {
    boolean lossless = contract.dtype().elementType().contains(type) && contract.scales().isOne();
    return lossless ? exact : new StoredKeyValues(exact, contract, scratch);
  }
}
