package bifocal.cuda.flashattention;

import bifocal.core.layer.AttentionLayerSpec;

/**
 * What a forward was compiled for. All are of bfloat16.
 *
 * @param headSize head size
 * @param group query heads of one key/value head
 * @param pageSize tokens of a block of the cache
 * @param window whether bounds are given at run time; otherwise it is causal
 */
record ForwardKey(int headSize, int group, int pageSize, boolean window) {

  /** What a layer's forward has to be compiled for. */
  static ForwardKey of(AttentionLayerSpec.Dense layer, int pageSize, boolean window) {
    return new ForwardKey(
        layer.headSize(), layer.numHeads() / layer.numKvHeads(), pageSize, window);
  }

  /** How messages call it. */
  String label() {
    return "FlashAttention 4 forward "
        + (window ? "with bounds" : "causal")
        + ", head size "
        + headSize
        + ", "
        + group
        + " query heads of a key/value head, blocks of "
        + pageSize;
  }
}
