package bifocal.cuda.memory;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.PlainKvLayout;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cuda.driver.CudaLaunchContext;

/**
 * What is required of a KV cache before its address reaches a kernel.
 *
 * @param contract the cache that the layer was prepared for
 * @param alignment bytes that its address and its block stride are multiples of
 */
public record CacheCheck(KvCacheSpec contract, int alignment) {

  /**
   * The cache of a call.
   *
   * @throws BifocalException {@code CLOSED}, {@code KV_INCOMPATIBLE} for another contract, {@code
   *     DEVICE_MISMATCH}, {@code SHAPE_MISMATCH} when it is not aligned
   */
  public void require(CudaLaunchContext launch, KvCacheView view) {
    view.requireOpen();
    if (!view.spec().equals(contract)) {
      throw BifocalException.of(
          ErrorCode.KV_INCOMPATIBLE, "contract of a KV cache", view.spec(), contract);
    }
    if (!view.device().equals(launch.device())) {
      throw BifocalException.of(
          ErrorCode.DEVICE_MISMATCH, "KV cache", view.device(), launch.device());
    }
    if ((view.memory().address() | view.blockStride()) % alignment != 0) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          "address and block stride of a KV cache",
          "0x" + Long.toHexString(view.memory().address()) + ", " + view.blockStride(),
          "multiples of " + alignment + " bytes");
    }
  }

  /**
   * The blocks that a step reads.
   *
   * @param largest the largest of its block table, -1 when it reads none
   * @throws BifocalException {@code BLOCK_OUT_OF_RANGE}
   */
  public static void requireBlocks(KvCacheView view, int largest) {
    if (largest >= view.numBlocks()) {
      throw BifocalException.of(
          ErrorCode.BLOCK_OUT_OF_RANGE,
          "block of the block table",
          largest,
          "0.." + (view.numBlocks() - 1));
    }
  }

  /**
   * The layout of a cache of plain numbers.
   *
   * @throws BifocalException {@code UNSUPPORTED} for any other
   */
  public static PlainKvLayout requirePlain(KvCacheSpec spec) {
    if (spec.layout() instanceof PlainKvLayout plain && !spec.dtype().perTokenHead()) {
      return plain;
    }
    throw BifocalException.of(
        ErrorCode.UNSUPPORTED,
        "layout of a KV cache",
        spec.layout().name() + " of " + spec.dtype(),
        "NHD or HND of plain numbers");
  }
}
