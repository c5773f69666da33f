package bifocal.cuda.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.latent.QueryQuantization;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * What {@code FLASHINFER_MLA_SPARSE_SM90} plans anew before each step, outside graph capture: how
 * many keys each row of one query token reads. Queries are bf16 over every cache; cached numbers of
 * 8 bits are turned back in the kernel, by one scale.
 *
 * @param indexTopk keys that the indexer chooses for a query
 * @param indexKpool tokens that the indexer scores as one
 */
public record FlashInferSm90Plan(int indexTopk, int indexKpool) {
  /** Tokens of a page: chosen slots are the page table. */
  public static final int PAGE_SIZE = 1;

  /** The indexer has chosen among earlier keys already. */
  public static final boolean CAUSAL = false;

  /** Bytes of the workspace. */
  public static final long WORKSPACE_BYTES = 128L << 20;

  /** Queries are in the model's type. */
  public static final QueryQuantization QUERIES = QueryQuantization.NEVER;

  private static final int HOPPER = 9;

  public FlashInferSm90Plan {
    if (indexTopk < 1 || indexKpool < 1) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "index_topk and index_kpool",
          indexTopk + " and " + indexKpool,
          "at least 1 each");
    }
  }

  /** What is worth knowing of a layer's calls. */
  static Seq<String> remarks(AttentionRequest request) {
    return Sm.major(request.device()) == HOPPER && request.layer().choosesKeys()
        ? LatentCacheTypes.queries(request, QUERIES)
            .append("each step is planned anew, outside of graph capture")
        : Vector.empty();
  }

  /**
   * Keys of a row: everything while it fits; then the chosen, and the tokens behind the last whole
   * pool.
   *
   * @param context keys up to and including the query token, in tokens
   */
  public int rowLength(int context) {
    return context <= indexTopk ? context : indexTopk + context % indexKpool;
  }

  /**
   * Requires that a step may be planned now.
   *
   * @param capturing whether a graph is being captured
   * @throws BifocalException {@code NOT_CAPTURABLE} when it is
   */
  public static void requirePlannable(boolean capturing) {
    if (capturing) {
      throw BifocalException.of(
          ErrorCode.NOT_CAPTURABLE,
          "plan of FLASHINFER_MLA_SPARSE_SM90",
          "a graph being captured",
          "a plan before the capture");
    }
  }
}
