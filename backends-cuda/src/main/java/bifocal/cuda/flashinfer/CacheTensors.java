package bifocal.cuda.flashinfer;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.PlainKvLayout;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.memory.CacheCheck;
import java.lang.foreign.MemorySegment;

/**
 * The keys and the values of a cache, as tensors of four dimensions: blocks, then tokens and heads
 * or heads and tokens, then elements.
 *
 * @param view the cache
 * @param keys its keys
 * @param values its values
 * @param layoutCode how modules call the layout
 * @param tokenKeys the keys again: blocks, tokens, heads, elements, whatever the layout
 * @param tokenValues the values likewise
 */
record CacheTensors(
    KvCacheView view,
    TensorView keys,
    TensorView values,
    int layoutCode,
    TensorView tokenKeys,
    TensorView tokenValues) {
  private static final int NHD = 0;
  private static final int HND = 1;

  static CacheTensors of(KvCacheView view) {
    KvCacheSpec spec = view.spec();
    PlainKvLayout layout = CacheCheck.requirePlain(spec);
    boolean headFirst = layout.name().equals(KvLayouts.HND.name());
    DType type = spec.dtype().elementType().get();
    long bytes = type.bytes();
    long token = layout.keyTokenStride(spec) / bytes;
    long head = layout.keyHeadStride(spec) / bytes;
    long[] shape = {
      view.numBlocks(),
      headFirst ? spec.numKvHeads() : spec.blockSize(),
      headFirst ? spec.blockSize() : spec.numKvHeads(),
      spec.headSize()
    };
    long[] strides = {
      view.blockStride() / bytes, headFirst ? head : token, headFirst ? token : head, 1
    };
    MemorySegment keys = view.memory();
    MemorySegment values = keys.asSlice(layout.valueOffset(spec));
    long[] tokenShape = {view.numBlocks(), spec.blockSize(), spec.numKvHeads(), spec.headSize()};
    long[] tokenStrides = {view.blockStride() / bytes, token, head, 1};
    return new CacheTensors(
        view,
        TensorView.of(keys, type, view.device(), shape, strides),
        TensorView.of(values, type, view.device(), shape, strides),
        headFirst ? HND : NHD,
        TensorView.of(keys, type, view.device(), tokenShape, tokenStrides),
        TensorView.of(values, type, view.device(), tokenShape, tokenStrides));
  }

  /** Whether strides are multiples of a head's size and number heads in 32 bits, as XQA does. */
  boolean wholeHeads() {
    long head = tokenKeys.size(3);
    boolean whole = true;
    for (int i = 0; i < 3; i++) {
      whole &= tokenKeys.stride(i) % head == 0;
    }
    return whole && tokenKeys.size(0) * (tokenKeys.stride(0) / head) <= 1L << 32;
  }
}
