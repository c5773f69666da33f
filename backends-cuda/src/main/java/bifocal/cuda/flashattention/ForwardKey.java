package bifocal.cuda.flashattention;

import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.DType;

/**
 * What a forward was compiled for.
 *
 * @param dtype of queries, cache and output
 * @param headSize head size
 * @param group query heads of one key/value head
 * @param pageSize tokens of a block of the cache
 * @param window whether bounds are given at run time; otherwise it is causal
 */
record ForwardKey(DType dtype, int headSize, int group, int pageSize, boolean window) {

  /** What a layer's forward has to be compiled for. */
  static ForwardKey of(AttentionLayerSpec.Dense layer, int pageSize, boolean window) {
    return new ForwardKey(
        layer.dtype(), layer.headSize(), layer.numHeads() / layer.numKvHeads(), pageSize, window);
  }

  /** The forward of the same layers that takes bounds. */
  ForwardKey withBounds() {
    return new ForwardKey(dtype, headSize, group, pageSize, true);
  }

  /** How messages call it. */
  String label() {
    return "FlashAttention 4 forward "
        + (window ? "with bounds" : "causal")
        + ", "
        + dtype.label()
        + ", head size "
        + headSize
        + ", "
        + group
        + " query heads of a key/value head, blocks of "
        + pageSize;
  }
}
