package bifocal.cuda.select;

import bifocal.core.latent.ChosenKeys;
import bifocal.core.layer.AttentionLayerSpec;
import io.vavr.control.Option;

/**
 * The batch as {@code FLASH_ATTN_MLA_SPARSE} hands it over: each token is a request of its own,
 * whose block table are its chosen slots, in pages of one token.
 *
 * @param width entries of a row of the block table
 * @param blockTable {@code [tokens, width]}, row-major, keys in front
 * @param seqLens keys of each token
 */
public record FlashAttentionSparseTable(int width, long[] blockTable, int[] seqLens) {
  /** Tokens of a page. */
  public static final int PAGE_SIZE = 1;

  private static final int ROPE = 64;

  /** The table of keys that an indexer chose. */
  public static FlashAttentionSparseTable of(ChosenKeys chosen) {
    ChosenKeys compacted = chosen.compacted();
    Option<int[]> counts = compacted.counts();
    return new FlashAttentionSparseTable(
        compacted.perToken(), compacted.slots(), counts.getOrElse(new int[0]));
  }

  /**
   * The two operands that a query is handed over as.
   *
   * @param latent elements of the absorbed part of a head
   * @param rotary elements of the rotary part of a head
   * @param zeros whether the rotary part is zeros, in place of the one that the model lacks
   */
  public record QueryPair(int latent, int rotary, boolean zeros) {}

  /** The operands of a layer's query. */
  public static QueryPair query(AttentionLayerSpec.Mla layer) {
    boolean zeros = layer.qkRopeHeadDim() == 0;
    return new QueryPair(layer.kvLoraRank(), zeros ? ROPE : layer.qkRopeHeadDim(), zeros);
  }
}
