package bifocal.cuda.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.latent.KvSplits;
import bifocal.core.latent.QueryQuantization;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;
import io.vavr.control.Option;

/**
 * What a call of {@code TRITON_MLA}'s decode is made of. The kernel knows no block that attends
 * both ways: such blocks are flattened to tokens.
 */
public final class TritonLatent {
  /** Queries are in the model's type: cached numbers of 8 bits are turned back on load. */
  public static final QueryQuantization QUERIES = QueryQuantization.NEVER;

  private TritonLatent() {}

  /** What is worth knowing of a layer's calls. */
  static Seq<String> remarks(AttentionRequest request) {
    return LatentCacheTypes.queries(request, QUERIES)
        .appendAll(
            Option.when(request.deployment().batchInvariant(), "keys of a sequence are never cut"));
  }

  /**
   * Into how many parts the keys of each sequence are cut.
   *
   * @param longest keys of the longest sequence, in tokens
   * @param multiprocessors of the device
   * @param batchInvariant whether results may not depend on the batch
   */
  public static int splits(int longest, int multiprocessors, boolean batchInvariant) {
    return batchInvariant
        ? KvSplits.BATCH_INVARIANT
        : KvSplits.ofWholeRuns(longest, multiprocessors);
  }

  /** Type of the log-sum-exp for a type of query. */
  public static DType logSumExp(DType query) {
    return query;
  }
}
