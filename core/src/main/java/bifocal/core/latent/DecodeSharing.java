package bifocal.core.latent;

import bifocal.core.backend.BackendName;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * How ranks that share sequences decode together.
 *
 * @param sharing who has which token
 * @param exchange how partial results meet
 */
public record DecodeSharing(SharedSequence sharing, Exchange exchange) {
  private static final BackendName FLASHMLA_SPARSE = BackendName.of("FLASHMLA_SPARSE");

  /** How partial results of ranks meet. */
  public enum Exchange {
    /** Log-sum-exps are gathered, scaled outputs are reduced and scattered over heads. */
    AG_RS,
    /** Outputs and log-sum-exps are exchanged by heads; the receiver weighs them. */
    A2A;

    /** How they meet unless the user says otherwise. */
    public static final Exchange DEFAULT = AG_RS;
  }

  /**
   * Everything against it.
   *
   * @param backend whose layers are shared
   * @param features what the backend can do
   * @param blockSize tokens per block of the cache
   * @param speculativeTokens tokens that a decode verifies
   */
  public Seq<String> objections(
      BackendName backend, FeatureSet features, int blockSize, int speculativeTokens) {
    int turn = sharing.turn();
    return Vector.of(
            lacksLogSumExp(backend, features),
            Option.when(
                exchange == Exchange.A2A && sharing.ranks() == 1,
                "dcp_comm_backend='a2a' requires decode_context_parallel_size > 1."),
            Option.when(
                exchange == Exchange.A2A && sharing.ranks() > 1 && backend.equals(FLASHMLA_SPARSE),
                "DCP for FlashMLA sparse is only validated with the default 'ag_rs' DCP comm"
                    + " backend; got 'a2a'"),
            Option.when(
                blockSize < turn || blockSize % turn != 0,
                "block_size "
                    + blockSize
                    + " must be at least cp_kv_cache_interleave_size "
                    + turn
                    + " and divisible by it"),
            Option.when(
                speculativeTokens > 0 && turn > 1,
                "MTP with cp_kv_cache_interleave_size > 1 is not supported in " + backend + "."))
        .flatMap(objection -> objection);
  }

  /** Whether a decode must return its log-sum-exp, by which partial results are weighed. */
  public boolean returnsLogSumExp(FeatureSet features) {
    return sharing.ranks() > 1 && (features.has(Feature.LSE) || features.has(Feature.LSE_BASE_2));
  }

  private Option<String> lacksLogSumExp(BackendName backend, FeatureSet features) {
    return Option.when(
        sharing.ranks() > 1 && !returnsLogSumExp(features),
        () ->
            "Decode Context Parallelism (DCP) requires attention implementations to return the"
                + " softmax LSE during decode, but "
                + backend
                + " does not. Try a different backend by setting --attention-backend or disable"
                + " DCP.");
  }
}
