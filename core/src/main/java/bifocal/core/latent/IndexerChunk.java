package bifocal.core.latent;

import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * Requests of a prefill whose keys an indexer scores in one go.
 *
 * @param firstRequest first request
 * @param endRequest request behind the last
 * @param firstQuery first of the requests' query tokens, counted from the first request's
 * @param endQuery query token behind the last
 */
public record IndexerChunk(int firstRequest, int endRequest, int firstQuery, int endQuery) {
  private static final int BYTES_PER_SCORE = Float.BYTES;

  /**
   * Cuts a prefill so that the gathered keys and the scores of a chunk stay within bounds. A
   * request whose scores are too many by itself is cut between its query tokens.
   *
   * @param seqLens keys of each request
   * @param queryLens query tokens of each request
   * @param rows keys that can be gathered
   * @param bytes memory of the scores
   */
  public static Seq<IndexerChunk> plan(
      Seq<Integer> seqLens, Seq<Integer> queryLens, int rows, long bytes) {
    long scores = bytes / BYTES_PER_SCORE;
    Seq<IndexerChunk> chunks = Vector.empty();
    int request = 0;
    while (request < seqLens.size()) {
      int end = request + 1;
      long keys = seqLens.get(request);
      long queries = queryLens.get(request);
      if (keys * queries > scores) {
        chunks = chunks.appendAll(pieces(request, keys, (int) queries, scores));
      } else {
        while (end < seqLens.size()
            && keys + seqLens.get(end) <= rows
            && (keys + seqLens.get(end)) * (queries + queryLens.get(end)) <= scores) {
          keys += seqLens.get(end);
          queries += queryLens.get(end);
          end++;
        }
        if (queries > 0) {
          chunks = chunks.append(new IndexerChunk(request, end, 0, (int) queries));
        }
      }
      request = end;
    }
    return chunks;
  }

  private static Seq<IndexerChunk> pieces(int request, long keys, int queries, long scores) {
    int most = (int) Math.max(1, scores / keys);
    Seq<IndexerChunk> pieces = Vector.empty();
    for (int from = 0; from < queries; from += most) {
      pieces =
          pieces.append(
              new IndexerChunk(request, request + 1, from, Math.min(queries, from + most)));
    }
    return pieces;
  }
}
