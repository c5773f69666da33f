package bifocal.cuda.flashattention;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.PlainKvLayout;
import bifocal.core.error.BifocalException;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.memory.CacheCheck;

/**
 * The keys and the values of a cache as tensors of blocks, tokens, heads and elements, whatever
 * lies closest to what.
 *
 * @param view the cache
 * @param keys its keys
 * @param values its values
 */
record CacheSides(KvCacheView view, TensorView keys, TensorView values) {
  /**
   * The sides of a cache.
   *
   * @throws BifocalException {@code UNSUPPORTED} for another layout than NHD and HND
   */
  static CacheSides of(KvCacheView view) {
    KvCacheSpec spec = view.spec();
    PlainKvLayout layout = CacheCheck.requirePlain(spec);
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
}
