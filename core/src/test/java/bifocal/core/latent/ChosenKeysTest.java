package bifocal.core.latent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.BifocalException;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Positions that an indexer chose, as slots of a cache. */
class ChosenKeysTest {
  private static final int BLOCK = 64;
  private static final int TOPK = 128;
  private static final int[][] TABLE =
      IntStream.range(0, 4)
          .mapToObj(r -> IntStream.range(10 * r, 10 * r + 10).toArray())
          .toArray(int[][]::new);

  private static int[] positions(Random random, int tokens, int... valid) {
    int[] positions = new int[tokens * TOPK];
    Arrays.fill(positions, ChosenKeys.NONE);
    for (int token = 0; token < tokens; token++) {
      int[] places = IntStream.range(0, TOPK).toArray();
      for (int i = 0; i < valid[token]; i++) {
        int other = i + random.nextInt(TOPK - i);
        int place = places[other];
        places[other] = places[i];
        positions[token * TOPK + place] = random.nextInt(10 * BLOCK);
      }
    }
    return positions;
  }

  @Test
  void aPositionIsFoundThroughTheBlockTableOfItsRequest() {
    int[] positions = new int[2 * TOPK];
    Arrays.fill(positions, ChosenKeys.NONE);
    positions[3] = 70;
    positions[TOPK] = 0;
    positions[TOPK + 1] = 639;
    positions[TOPK + 2] = 640;

    ChosenKeys keys =
        ChosenKeys.of(
            ChosenKeys.Cache.alone(TABLE, BLOCK), new int[] {2, 1}, positions, TOPK, false);

    assertThat(keys.slots()[3]).isEqualTo(21 * BLOCK + 6);
    assertThat(keys.slots()[TOPK]).isEqualTo(10 * BLOCK);
    assertThat(keys.slots()[TOPK + 1]).isEqualTo(19 * BLOCK + 63);
    assertThat(keys.slots()[TOPK + 2]).as("behind the table").isEqualTo(ChosenKeys.NONE);
    assertThat(LongStream.of(keys.slots()).filter(slot -> slot != ChosenKeys.NONE).count())
        .isEqualTo(3);
    assertThat(keys.counts()).isEmpty();
  }

  @Test
  void moreRequestNumbersThanRowsOfKeysAreRefused() {
    int[] requests = {0, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3};
    int[] positions = positions(new Random(5), 2, TOPK, TOPK);
    ChosenKeys.Cache cache = ChosenKeys.Cache.alone(TABLE, BLOCK);

    assertThatThrownBy(() -> ChosenKeys.of(cache, requests, positions, TOPK, false))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining("must cover the same tokens");
    assertThat(ChosenKeys.of(cache, Arrays.copyOf(requests, 2), positions, TOPK, false).slots())
        .hasSize(2 * TOPK);
  }

  @Test
  void countsAreThoseOfTheValidKeysAndCountingChangesNothing() {
    int[] requests = {0, 1, 2, 3};
    int[] positions = positions(new Random(7), 4, 64, 32, 128, 1);
    ChosenKeys.Cache cache = ChosenKeys.Cache.alone(TABLE, BLOCK);

    ChosenKeys counted = ChosenKeys.of(cache, requests, positions, TOPK, true);

    assertThat(counted.counts().get()).containsExactly(64, 32, 128, 1);
    assertThat(ChosenKeys.of(cache, requests, positions, TOPK, false).slots())
        .containsExactly(counted.slots());
  }

  @Test
  void keysBehindTheBlockTableAreNotCounted() {
    int[] positions = positions(new Random(7), 1, 5);
    int first = IntStream.range(0, TOPK).filter(i -> positions[i] >= 0).findFirst().orElseThrow();
    positions[first] = 10 * BLOCK;

    assertThat(
            ChosenKeys.of(
                    ChosenKeys.Cache.alone(TABLE, BLOCK), new int[] {0}, positions, TOPK, true)
                .counts()
                .get())
        .containsExactly(4);
  }

  @ParameterizedTest(name = "{0} ranks, turns of {1}")
  @CsvSource({"2, 1", "2, 64", "4, 16", "3, 5"})
  void everyKeyIsOfOneRank(int ranks, int turn) {
    SharedSequence sharing = new SharedSequence(ranks, turn);
    int[] positions = IntStream.range(0, 2 * TOPK).toArray();
    boolean[] found = new boolean[positions.length];
    for (int rank = 0; rank < ranks; rank++) {
      ChosenKeys keys =
          ChosenKeys.of(
              new ChosenKeys.Cache(TABLE, BLOCK, sharing, rank),
              new int[] {1, 1},
              positions,
              TOPK,
              false);
      for (int i = 0; i < positions.length; i++) {
        if (keys.slots()[i] != ChosenKeys.NONE) {
          assertThat(found[i]).as("position %d of rank %d", i, rank).isFalse();
          assertThat(keys.slots()[i]).isEqualTo(10 * BLOCK + sharing.local(i));
          found[i] = true;
        }
      }
    }
    assertThat(found).doesNotContain(false);
  }

  @Test
  void compactedKeysStandInFrontOfTheirHoles() {
    SharedSequence sharing = new SharedSequence(2, 1);
    int[] positions = positions(new Random(11), 2, 100, 3);
    ChosenKeys sparse =
        ChosenKeys.of(
            new ChosenKeys.Cache(TABLE, BLOCK, sharing, 1),
            new int[] {0, 3},
            positions,
            TOPK,
            true);

    ChosenKeys compact = sparse.compacted();

    assertThat(compact.counts().get()).containsExactly(sparse.counts().get());
    for (int token = 0; token < 2; token++) {
      int count = sparse.counts().get()[token];
      long[] before = Arrays.copyOfRange(sparse.slots(), token * TOPK, (token + 1) * TOPK);
      long[] after = Arrays.copyOfRange(compact.slots(), token * TOPK, (token + 1) * TOPK);
      assertThat(Arrays.copyOf(after, count))
          .containsExactlyInAnyOrder(
              LongStream.of(before).filter(slot -> slot != ChosenKeys.NONE).toArray());
      assertThat(Arrays.copyOfRange(after, count, TOPK)).containsOnly(ChosenKeys.NONE);
    }
  }

  @Test
  void entriesThatDoNotFillTilesAreRefused() {
    assertThatThrownBy(
            () ->
                ChosenKeys.of(
                    ChosenKeys.Cache.alone(TABLE, BLOCK), new int[] {0}, new int[100], 100, false))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining("a multiple of 128");
  }

  @Test
  void slotsAreCountedInSixtyFourBits() {
    int[] positions = new int[TOPK];
    Arrays.fill(positions, ChosenKeys.NONE);
    positions[0] = 5;

    assertThat(
            ChosenKeys.of(
                    ChosenKeys.Cache.alone(new int[][] {{1 << 30}}, BLOCK),
                    new int[] {0},
                    positions,
                    TOPK,
                    false)
                .slots()[0])
        .isEqualTo((1L << 36) + 5);
  }

  @ParameterizedTest(name = "window {0}, causal {1}, {2} drafted: {3} keys")
  @CsvSource({"128, true, 5, 128", "128, false, 5, 192", "128, false, 0, 128", "100, true, 0, 128"})
  void aWindowKernelTakesTheWindowAndWhatIsSeenBehindIt(
      int window, boolean causal, int drafted, int keys) {
    assertThat(ChosenKeys.ofWindow(window, causal, drafted)).isEqualTo(keys);
  }
}
