package bifocal.core.batch;

import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;

/**
 * Where each token of a step goes in the cache.
 *
 * @param slots int64 {@code [tokens]}: block times block size plus position inside the block; -1
 *     means that the token is not written
 */
public record SlotMapping(TensorView slots) {
  /** Slot of a token that is not written. */
  public static final long PADDING = -1;

  public SlotMapping {
    slots.require("slot mapping", DType.INT64, slots.device(), -1);
  }

  /** Number of tokens. */
  public long tokens() {
    return slots.size(0);
  }
}
