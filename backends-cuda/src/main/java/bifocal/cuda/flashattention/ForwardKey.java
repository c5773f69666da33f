package bifocal.cuda.flashattention;

import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * What a forward was compiled for.
 *
 * @param dtype of queries, cache and output
 * @param headSize head size
 * @param group query heads of one key/value head
 * @param pageSize tokens of a block of the cache
 * @param sight which keys a query sees
 */
record ForwardKey(DType dtype, int headSize, int group, int pageSize, Sight sight) {

  /** Which keys of its run a query sees. */
  enum Sight {
    /** No later ones. */
    CAUSAL("causal"),
    /** All. */
    FULL("full"),
    /** As many before and after it as the call says. */
    BOUNDS("bounds");

    private final String label;

    Sight(String label) {
      this.label = label;
    }

    /** As manifests have it. */
    String label() {
      return label;
    }

    /** What runs of a layer see. */
    static Sight of(boolean window, boolean later) {
      if (window) {
        return BOUNDS;
      }
      return later ? FULL : CAUSAL;
    }
  }

  /** What the forward of a layer's runs has to be compiled for. */
  static ForwardKey of(AttentionLayerSpec.Dense layer, int pageSize, boolean later) {
    return new ForwardKey(
        layer.dtype(),
        layer.headSize(),
        layer.numHeads() / layer.numKvHeads(),
        pageSize,
        Sight.of(layer.mask().window().isDefined(), later));
  }

  /** All that a layer's batches may need: images may come as runs that see later keys. */
  static Seq<ForwardKey> allOf(AttentionLayerSpec.Dense layer, int pageSize) {
    return Vector.of(of(layer, pageSize, false), of(layer, pageSize, true)).distinct();
  }

  /** The forward of another sight for the same layers. */
  ForwardKey with(Sight other) {
    return new ForwardKey(dtype, headSize, group, pageSize, other);
  }

  /** How messages call it. */
  String label() {
    return "FlashAttention 4 forward, "
        + sight.label()
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
