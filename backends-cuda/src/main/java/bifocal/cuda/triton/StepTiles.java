package bifocal.cuda.triton;

import bifocal.core.batch.CommonAttentionMetadata;

/**
 * The tiles of a batch, of requests with few queries apart from the others. It belongs to one
 * build.
 *
 * @param prefill tiles for the prefill kernel, in the order of the batch
 * @param decode tiles for the decode kernel, one a request, in the order of the batch
 * @param firstDecodeRow first q row of a decode tile, 0 when there is none
 * @param endDecodeRow one more than the last q row of a decode tile
 */
record StepTiles(TileList prefill, TileList decode, int firstDecodeRow, int endDecodeRow) {

  /**
   * Cuts a batch into tiles.
   *
   * @param cursor says which keys the queries see
   * @param prefillTokens most query tokens of a prefill tile
   * @param decodeTokens most query tokens of a decode tile; a request with more is a prefill
   */
  static StepTiles of(
      CommonAttentionMetadata batch, KeyCursor cursor, int prefillTokens, int decodeTokens) {
    TileList prefill = new TileList(batch.live() + batch.tokens() / prefillTokens);
    TileList decode = new TileList(batch.live());
    int first = Integer.MAX_VALUE;
    int end = 0;
    for (int r = 0; r < batch.live(); r++) {
      int queries = batch.queryLen(r);
      if (queries == 0) {
        continue;
      }
      cursor.begin(r);
      if (queries <= decodeTokens) {
        add(decode, batch, cursor, r, 0, queries);
        first = Math.min(first, batch.queryStart(r));
        end = Math.max(end, batch.queryStart(r) + queries);
      } else {
        for (int at = 0; at < queries; at += prefillTokens) {
          add(prefill, batch, cursor, r, at, Math.min(prefillTokens, queries - at));
        }
      }
    }
    return new StepTiles(prefill, decode, Math.min(first, end), end);
  }

  private static void add(
      TileList tiles,
      CommonAttentionMetadata batch,
      KeyCursor cursor,
      int request,
      int at,
      int tokens) {
    cursor.take(tokens);
    tiles.add(
        batch.queryStart(request) + at,
        tokens,
        batch.firstPosition(request) + at,
        batch.seqLen(request),
        cursor,
        batch.blockTableRow(request));
  }

  /** Q rows between the first and the last of a decode tile. */
  int decodeRows() {
    return endDecodeRow - firstDecodeRow;
  }
}
