package bifocal.core.backend;

import bifocal.core.tensor.TensorView;
import io.vavr.control.Option;

/**
 * Where a forward writes. Rows of live requests are written completely; other rows are left alone.
 *
 * @param out {@code [queryTokens, numHeads, headSizeV]}, type of the queries or fp32
 * @param lse natural log-sum-exp with the sink, fp32 {@code [queryTokens, numHeads]}, if wanted
 */
public record AttentionOutput(TensorView out, Option<TensorView> lse) {
  /** Output without the log-sum-exp. */
  public static AttentionOutput of(TensorView out) {
    return new AttentionOutput(out, Option.none());
  }
}
