package bifocal.core.latent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.BackendName;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.error.BifocalException;
import io.vavr.collection.List;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Planning rows of latent attention; each test names the table that its rows come from. */
class LatentPlansTest {

  private static Seq<Integer> numbers(String text) {
    return Vector.of(text.split(" ")).filter(n -> !n.isEmpty()).map(Integer::valueOf);
  }

  private static String written(Seq<ContextChunk> chunks) {
    return chunks
        .map(
            chunk ->
                chunk
                        .pieces()
                        .map(p -> p.request() + ":" + p.start() + "+" + p.length())
                        .mkString(" ")
                    + (chunk.continues() ? " again" : ""))
        .mkString(" / ");
  }

  @ParameterizedTest(name = "context chunks: {0}, {1} rows")
  @CsvSource({
    "768 512 512, 1024, '0:0+768 1:0+256 / 1:256+256 2:0+512 again'",
    "2048 32 32, 1024, '0:0+1024 / 0:1024+1024 again / 1:0+32 2:0+32'",
    "64 0 64 0, 1024, '0:0+64 / 2:0+64'",
    "0 0, 1024, ''",
  })
  void contextsAreCutToTheWorkspace(String contexts, int rows, String chunks) {
    assertThat(written(ContextChunk.plan(numbers(contexts), rows, 16, SharedSequence.ALONE)))
        .isEqualTo(chunks);
  }

  @Test
  void sharedContextsStayWithinEachRanksRows() {
    SharedSequence sharing = new SharedSequence(2, 64);
    Seq<Integer> contexts = List.of(3000, 200, 200);
    Seq<ContextChunk> chunks = ContextChunk.plan(contexts, 1024, 128, sharing);

    assertThat(chunks)
        .allSatisfy(
            chunk ->
                assertThat(
                        chunk.pieces().map(p -> sharing.paddedLength(p.length())).sum().intValue())
                    .isBetween(1, 512));
    for (int request = 0; request < 3; request++) {
      int of = request;
      assertThat(
              chunks
                  .flatMap(ContextChunk::pieces)
                  .filter(p -> p.request() == of)
                  .map(p -> sharing.paddedLength(p.length()))
                  .sum()
                  .intValue())
          .isEqualTo(Math.ceilDiv(contexts.get(request), 128) * 64);
    }
  }

  @Test
  void randomContextsAreCoveredOnceInOrder() {
    long seed = Long.getLong("bifocal.seed", 7L);
    Random random = new Random(seed);
    for (int i = 0; i < 500; i++) {
      Seq<Integer> contexts =
          Vector.fill(
              1 + random.nextInt(5), () -> random.nextInt(3) == 0 ? 0 : random.nextInt(900));
      int rows = 64 + random.nextInt(600);
      Seq<ContextChunk> chunks = ContextChunk.plan(contexts, rows, 16, SharedSequence.ALONE);

      Seq<ContextChunk.Piece> pieces = chunks.flatMap(ContextChunk::pieces);
      for (int request = 0; request < contexts.size(); request++) {
        int of = request;
        int next = 0;
        for (ContextChunk.Piece piece : pieces.filter(p -> p.request() == of)) {
          assertThat(piece.start()).as("seed %d, %s", seed, contexts).isEqualTo(next);
          assertThat(piece.start() % 16).isZero();
          next += piece.length();
        }
        assertThat(next).as("seed %d, %s", seed, contexts).isEqualTo(contexts.get(request));
      }
      assertThat(chunks)
          .allMatch(
              chunk -> chunk.pieces().map(ContextChunk.Piece::length).sum().intValue() <= rows)
          .allMatch(chunk -> chunk.pieces().tail().forAll(piece -> piece.start() == 0));
    }
  }

  @Test
  void aWorkspaceSmallerThanTheAlignmentIsRefused() {
    assertThatThrownBy(() -> ContextChunk.plan(List.of(50), 100, 128, SharedSequence.ALONE))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining(
            "chunked prefill workspace (100 rows) is smaller than the context chunk alignment (128"
                + " rows)");
  }

  @ParameterizedTest(name = "{0} ranks, turns of {1}")
  @CsvSource({"1, 1", "2, 1", "2, 64", "4, 16", "3, 5"})
  void tokensAreSharedInTurns(int ranks, int turn) {
    SharedSequence sharing = new SharedSequence(ranks, turn);
    int[] had = new int[ranks];
    for (int token = 0; token < 400; token++) {
      for (int rank = 0; rank < ranks; rank++) {
        assertThat(sharing.localLength(token, rank)).isEqualTo(had[rank]);
        assertThat(sharing.paddedLength(token)).isGreaterThanOrEqualTo(had[rank]);
      }
      int rank = sharing.rank(token);
      assertThat(rank).isEqualTo(token / turn % ranks);
      assertThat(sharing.local(token)).isEqualTo(had[rank]);
      had[rank]++;
    }
  }

  @ParameterizedTest(name = "context parallelism: {0} ranks, turns of {1}, {2}, blocks of {3}")
  @CsvSource({
    "2, 1, A2A, 16, 0, ''",
    "1, 1, AG_RS, 16, 0, ''",
    "1, 1, A2A, 16, 0, dcp_comm_backend='a2a' requires decode_context_parallel_size > 1.",
    "2, 16, AG_RS, 64, 0, ''",
    "2, 64, AG_RS, 16, 0, block_size 16 must be at least cp_kv_cache_interleave_size 64",
    "2, 24, AG_RS, 64, 0, block_size 64 must be at least cp_kv_cache_interleave_size 24 and",
    "2, 16, AG_RS, 64, 3, MTP with cp_kv_cache_interleave_size > 1 is not supported in FLASHMLA.",
    "2, 1, AG_RS, 64, 3, ''",
    "1, 1, AG_RS, 64, 3, ''",
  })
  void sharingIsCheckedBeforeTheStart(
      int ranks,
      int turn,
      DecodeSharing.Exchange exchange,
      int blockSize,
      int speculativeTokens,
      String text) {
    Seq<String> objections =
        new DecodeSharing(new SharedSequence(ranks, turn), exchange)
            .objections(
                BackendName.of("FLASHMLA"),
                FeatureSet.NONE.withFeatures(Feature.LSE),
                blockSize,
                speculativeTokens);

    if (text.isEmpty()) {
      assertThat(objections).isEmpty();
    } else {
      assertThat(objections).singleElement().asString().startsWith(text);
    }
  }

  @ParameterizedTest(name = "prefill chunks: {0}, at most {1}")
  @CsvSource({
    "2 3 4 2, 5, 0-2 2-3 3-4",
    "5 5 5, 5, 0-1 1-2 2-3",
    "1 1 1, 10, 0-3",
    "4 4 4, 100, 0-3",
    "7 1, 5, 0-1 1-2",
    "'', 5, ''",
  })
  void prefillsAreCutToTheWorkspace(String lengths, int most, String chunks) {
    assertThat(
            PrefillChunk.plan(numbers(lengths), most)
                .map(chunk -> chunk.first() + "-" + chunk.end())
                .mkString(" "))
        .isEqualTo(chunks);
  }

  @ParameterizedTest(name = "indexer chunks: keys {0}, queries {1}, {2} rows, {3} bytes")
  @CsvSource({
    "100 100 100, 10 10 10, 1000, 5000, '0-1 q 0-10, 1-2 q 0-10, 2-3 q 0-10'",
    "10 10 10, 5 5 5, 100, 10000, '0-3 q 0-15'",
    "10 10 10, 5 5 5, 100, 1000, '0-2 q 0-10, 2-3 q 0-5'",
    "50 50 50, 1 1 1, 50, 100000, '0-1 q 0-1, 1-2 q 0-1, 2-3 q 0-1'",
    "0, 0, 50, 100000, ''",
  })
  void scoresAreCutToTheirMemory(String keys, String queries, int rows, long bytes, String chunks) {
    assertThat(
            IndexerChunk.plan(numbers(keys), numbers(queries), rows, bytes)
                .map(LatentPlansTest::written)
                .mkString(", "))
        .isEqualTo(chunks);
  }

  private static String written(IndexerChunk chunk) {
    return chunk.firstRequest()
        + "-"
        + chunk.endRequest()
        + " q "
        + chunk.firstQuery()
        + "-"
        + chunk.endQuery();
  }

  @Test
  void aRequestWithTooManyScoresIsCutBetweenItsQueries() {
    Seq<IndexerChunk> chunks = IndexerChunk.plan(List.of(1000, 50), List.of(100, 5), 2000, 1000);

    assertThat(chunks).hasSize(101);
    assertThat(chunks.init())
        .allMatch(chunk -> chunk.firstRequest() == 0 && chunk.endQuery() - chunk.firstQuery() == 1);
    assertThat(chunks.last()).isEqualTo(new IndexerChunk(1, 2, 0, 5));
  }

  @ParameterizedTest(name = "masks of {0} requests of {1} queries: {2}")
  @CsvSource({"1, 32768, true", "1, 33024, false", "2, 32768, false", "1, 1, true"})
  void masksFitTheirWorkspaceOrDoNot(int batch, int queries, boolean fits) {
    assertThat(MaskWorkspace.fits(batch, queries, 0)).isEqualTo(fits);
  }

  @ParameterizedTest(name = "masks of {0} queries over {1} rows: {2} bytes")
  @CsvSource({"100, 0, 2048", "129, 0, 5120", "128, 320, 5120"})
  void masksAreWordsForTilesOfQueries(int queries, int context, long bytes) {
    assertThat(MaskWorkspace.bytes(1, queries, context)).isEqualTo(bytes);
  }

  @ParameterizedTest(name = "blocks both ways: {0}, {1} tokens")
  @CsvSource({"8 8, 108 208, 16, 2, 108 208", "8 8 0, 108 208 77, 24, 3, 108 208 0"})
  void equallyManyQueriesAreDecodes(
      String lengths, String keys, int tokens, int decodes, String kept) {
    assertThat(QueryBlock.of(numbers(lengths), numbers(keys), tokens, true))
        .isEqualTo(new QueryBlock(decodes, tokens, numbers(kept)));
  }

  @ParameterizedTest(name = "blocks both ways: {0}, marked {1}")
  @CsvSource({
    "8 8, false, Non-causal multi-token MLA requires an explicitly supported attention group.",
    "3 5, true, 'Non-causal MLA requires a uniform query block; got query lengths [3, 5]'",
    "8 0 8, true, 'Non-causal MLA requires a uniform query block; got query lengths [8, 0, 8]'",
  })
  void otherBlocksAreRefused(String lengths, boolean marked, String text) {
    assertThatThrownBy(() -> QueryBlock.of(numbers(lengths), numbers(lengths), 16, marked))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining(text);
  }
}
