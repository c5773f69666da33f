package bifocal.core.layer;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * Layers that share one specification, one KV cache contract and, in each step, one batch metadata
 * and one route. Two layer kinds of a model (sliding and full, say) are two groups.
 *
 * @param name how reports call the group
 * @param spec what each layer of the group asks
 * @param layers names of the layers, in model order, at least one
 */
public record LayerGroup(String name, AttentionLayerSpec spec, Seq<String> layers) {

  public LayerGroup {
    if (layers.isEmpty()) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER, "layers of group " + name, 0, "at least one");
    }
  }

  /** A group of one layer that bears the group's name. */
  public static LayerGroup of(String name, AttentionLayerSpec spec) {
    return new LayerGroup(name, spec, Vector.of(name));
  }

  /** The declared mask of the group's layers. */
  public AttentionMask mask() {
    return spec.mask();
  }
}
