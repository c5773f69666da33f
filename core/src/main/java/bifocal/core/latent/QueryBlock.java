package bifocal.core.latent;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * Query tokens of several requests, equally many of each, that attend both ways within their
 * request.
 *
 * @param decodes requests, padding included
 * @param tokens query tokens, padding included
 * @param seqLens keys of each request, 0 for padding
 */
public record QueryBlock(int decodes, int tokens, Seq<Integer> seqLens) {

  /**
   * The block of a batch.
   *
   * @param queryLens query tokens of each request; 0 for padding behind the others
   * @param seqLens keys of each request; those of padding are not read
   * @param tokens query tokens of the batch, padding included
   * @param marked whether the layer group says that it runs such blocks
   * @throws BifocalException {@code UNSUPPORTED} when it does not, or the lengths differ
   */
  public static QueryBlock of(
      Seq<Integer> queryLens, Seq<Integer> seqLens, int tokens, boolean marked) {
    if (!marked) {
      throw BifocalException.of(
          ErrorCode.UNSUPPORTED,
          "Non-causal multi-token MLA requires an explicitly supported attention group.");
    }
    Seq<Integer> live = queryLens.reverse().dropWhile(length -> length == 0).reverse();
    if (live.isEmpty() || live.exists(length -> !length.equals(live.head()))) {
      throw BifocalException.of(
          ErrorCode.UNSUPPORTED,
          "Non-causal MLA requires a uniform query block; got query lengths "
              + queryLens.mkString("[", ", ", "]"));
    }
    return new QueryBlock(
        queryLens.size(),
        tokens,
        seqLens.take(live.size()).appendAll(Vector.fill(queryLens.size() - live.size(), 0)));
  }

  /**
   * The same tokens as decodes of one token each, for kernels that know no two-way block: every
   * token sees all keys of its request. Row {@code i} has the block table row of request {@code i /
   * (tokens / decodes)}.
   */
  public QueryBlock flattened() {
    int each = decodes == 0 ? 0 : tokens / decodes;
    return new QueryBlock(
        tokens, tokens, seqLens.flatMap(length -> Vector.fill(each, () -> length)).toVector());
  }
}
