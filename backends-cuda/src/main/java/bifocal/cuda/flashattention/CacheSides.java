package bifocal.cuda.flashattention;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.PlainKvLayout;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;

/**
 * The keys and the values of a cache as tensors of blocks, tokens, heads and elements, whatever
 * lies closest to what.
 *
 * @param view the cache
 * @param keys its keys
 * @param values its values
 */
record CacheSides(KvCacheView view, TensorView keys, TensorView values) {
  private static final int ALIGNMENT = 16;

  /**
   * The sides of a cache.
   *
   * @throws BifocalException {@code UNSUPPORTED} for another layout than NHD and HND, {@code
   *     SHAPE_MISMATCH} for blocks that are not aligned
   */
  static CacheSides of(KvCacheView view) {
    KvCacheSpec spec = view.spec();
    PlainKvLayout layout = requirePlain(spec);
    if ((view.memory().address() | view.blockStride()) % ALIGNMENT != 0) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          "address and block stride of a KV cache",
          "0x" + Long.toHexString(view.memory().address()) + ", " + view.blockStride(),
          "multiples of " + ALIGNMENT + " bytes");
    }
    DType type = spec.dtype().elementType().get();
    long bytes = type.bytes();
    long[] shape = {view.numBlocks(), spec.blockSize(), spec.numKvHeads(), spec.headSize()};
    long[] strides = {
      view.blockStride() / bytes,
      layout.keyTokenStride(spec) / bytes,
      layout.keyHeadStride(spec) / bytes,
      1
    };
    return new CacheSides(
        view,
        TensorView.of(view.memory(), type, view.device(), shape, strides),
        TensorView.of(
            view.memory().asSlice(layout.valueOffset(spec)), type, view.device(), shape, strides));
  }

  /**
   * The layout, if forwards can read it.
   *
   * @throws BifocalException {@code UNSUPPORTED}
   */
  static PlainKvLayout requirePlain(KvCacheSpec spec) {
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
