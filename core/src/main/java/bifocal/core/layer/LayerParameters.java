package bifocal.core.layer;

import bifocal.core.tensor.TensorView;
import io.vavr.control.Option;

/**
 * Weights of one layer that attention itself reads.
 *
 * @param sinks sink logit per query head, fp32 {@code [numHeads]}, on the layer's device
 * @param alibiSlopes slope per query head, fp32 {@code [numHeads]}, on the layer's device
 */
public record LayerParameters(Option<TensorView> sinks, Option<TensorView> alibiSlopes) {
  /** A layer without such weights. */
  public static final LayerParameters NONE = new LayerParameters(Option.none(), Option.none());
}
