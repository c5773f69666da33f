package bifocal.core.backend;

import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheView;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.TensorView;

/**
 * Runs the attention of one layer. It keeps nothing of a step.
 *
 * @param <M> metadata it runs
 */
public interface AttentionImpl<M extends AttentionMetadata> extends AutoCloseable {
  /**
   * Writes a step's keys and values into the cache. The slots say all there is to know, so the
   * writer needs no metadata and a composite's general child can write for any route.
   */
  void writeKv(LaunchContext launch, KvInput input, KvCacheView cache, SlotMapping slots);

  /**
   * Computes attention of a step's queries over the cache.
   *
   * @param q {@code [queryTokens, numHeads, headSize]}
   */
  void forward(
      LaunchContext launch, TensorView q, KvCacheView cache, M metadata, AttentionOutput output);

  /**
   * Computes attention over keys and values that are in no cache, as encoder layers do.
   *
   * @param kv keys and values of the requests, back to back, in the metadata's order
   * @throws BifocalException {@code UNSUPPORTED} unless overridden
   */
  default void forwardUncached(
      LaunchContext launch, TensorView q, KvInput kv, M metadata, AttentionOutput output) {
    throw BifocalException.of(
        ErrorCode.UNSUPPORTED,
        "attention without a KV cache",
        getClass().getSimpleName(),
        "a cache");
  }

  /** Releases what the implementation owns; closing twice is harmless. */
  @Override
  default void close() {}
}
