package bifocal.core.backend;

import bifocal.core.Incubating;
import bifocal.core.tensor.TensorView;

/** Keys and values of a step's tokens, before they enter the cache. */
public sealed interface KvInput {
  /**
   * @param k {@code [tokens, numKvHeads, headSize]}
   * @param v {@code [tokens, numKvHeads, headSizeV]}
   */
  record Dense(TensorView k, TensorView v) implements KvInput {}

  /**
   * @param ckv latent vectors {@code [tokens, kvLoraRank]}
   * @param kPe rotary keys {@code [tokens, qkRopeHeadDim]}
   */
  @Incubating
  record Latent(TensorView ckv, TensorView kPe) implements KvInput {}
}
