package bifocal.routing;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Child;
import bifocal.core.route.RouteReason;

/**
 * Prefills to child A, decodes to child B. A decode has at most a threshold of queries and, where
 * the host says which requests still work on their prompt, is none of these.
 */
public final class PrefillDecodeRouting extends PerRequestRouting {
  private final int threshold;

  private PrefillDecodeRouting(boolean splits, int threshold) {
    super(splits);
    this.threshold = threshold;
  }

  /** Splits batches; a decode has one query. */
  public PrefillDecodeRouting() {
    this(true, 1);
  }

  /** The same policy, with every batch on one child: child A if it holds a prefill. */
  public PrefillDecodeRouting wholeBatch() {
    return new PrefillDecodeRouting(false, threshold);
  }

  /**
   * The same policy with another threshold.
   *
   * @param queries most queries of a decode, at least 1
   */
  public PrefillDecodeRouting withThreshold(int queries) {
    if (queries < 1) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER, "queries of a decode", queries, "at least 1");
    }
    return new PrefillDecodeRouting(splits(), queries);
  }

  /**
   * The same policy for speculative decoding: a decode also verifies the drafted tokens.
   *
   * @param drafted most drafted tokens of one request and step, at least 0
   */
  public PrefillDecodeRouting withSpeculativeTokens(int drafted) {
    if (drafted < 0 || drafted == Integer.MAX_VALUE) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER, "speculative tokens", drafted, "at least 0");
    }
    return withThreshold(1 + drafted);
  }

  /** Most queries of a decode. */
  public int threshold() {
    return threshold;
  }

  @Override
  Child child(LayerGroup group, CommonAttentionMetadata batch, int request) {
    boolean prefill =
        batch.queryLen(request) > threshold
            || (batch.knowsPrefilling() && batch.prefilling(request));
    return prefill ? Child.A : Child.B;
  }

  @Override
  RouteReason reason(Child child) {
    return child == Child.A ? RouteReason.PREFILL : RouteReason.DECODE;
  }

  /** Batches of decodes keep to child B. */
  @Override
  public GraphSupport graphSupport(LayerGroup group) {
    return threshold == 1 ? GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE : GraphSupport.UNIFORM_BATCH;
  }

  @Override
  public String toString() {
    return "PrefillDecodeRouting[splits=" + splits() + ", threshold=" + threshold + "]";
  }
}
