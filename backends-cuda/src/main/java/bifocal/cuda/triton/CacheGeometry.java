package bifocal.cuda.triton;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.PlainKvLayout;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;

/**
 * Distances inside a block of a plain cache, in elements, and where its parts begin, in bytes.
 *
 * @param elementBytes bytes of a cached number
 * @param slot from a token's key to the next token's
 * @param head from a head's key to the next head's
 * @param valueOffset where values begin
 * @param tokenScales whether each token and head has a scale of its own in the block
 * @param keyScaleOffset where scales of keys begin
 * @param valueScaleOffset where scales of values begin
 * @param scaleSlot scales from a token to the next
 * @param scaleHead scales from a head to the next
 */
record CacheGeometry(
    int elementBytes,
    long slot,
    long head,
    long valueOffset,
    boolean tokenScales,
    long keyScaleOffset,
    long valueScaleOffset,
    long scaleSlot,
    long scaleHead) {

  /** Blocks begin at multiples of so many bytes: strides of 16 elements of the widest type. */
  static final int ALIGNMENT = 64;

  /**
   * The geometry of a contract.
   *
   * @throws BifocalException {@code UNSUPPORTED} for another layout than NHD and HND
   */
  static CacheGeometry of(KvCacheSpec cache) {
    if (!(cache.layout() instanceof PlainKvLayout plain)) {
      throw BifocalException.of(
          ErrorCode.UNSUPPORTED, "layout of a KV cache", cache.layout().name(), "NHD or HND");
    }
    int bytes = cache.dtype().elementType().get().bytes();
    long slot = plain.keyTokenStride(cache) / bytes;
    long head = plain.keyHeadStride(cache) / bytes;
    boolean scaled = cache.dtype().perTokenHead();
    return new CacheGeometry(
        bytes,
        slot,
        head,
        plain.valueOffset(cache),
        scaled,
        scaled ? plain.keyScaleOffset(cache, 0, 0) : 0,
        scaled ? plain.valueScaleOffset(cache, 0, 0) : 0,
        slot / cache.headSize(),
        head / cache.headSize());
  }
}
