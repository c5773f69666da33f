package bifocal.core.batch;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.error.ErrorCode;
import io.vavr.collection.Vector;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class DecodeFirstOrderTest {
  private static final long SEED = 82;

  /** A request is {@code scheduled/computed/prompt}. */
  @ParameterizedTest
  @CsvSource({
    "1, 100/100/100 1/10/10 200/200/200 1/20/20, 3 1 2 0",
    "1, 100/100/100 200/200/200 1/10/10 1/20/20, 2 3 0 1",
    "1, 100/0/100 10/50/50 1/10/10, 2 1 0",
    "1, 100/0/100 10/50/50 200/0/200 20/75/75, 3 1 2 0",
    "1, 1/20/20 1/50/50 374/0/374 300/20/20 1/20/20 256/0/256 1/5/5 27/0/27 1/4/4,"
        + " 0 1 6 8 4 3 2 7 5",
    "1, 100/0/100 1/0/1 50/100/100 1/10/10, 3 2 0 1",
    "1, 1/0/1 1/0/1 1/50/50 200/0/200, 2 1 0 3",
    "1, 100/0/100 1/50/100 1/100/100 10/50/100, 2 1 3 0",
    "2, 2/100/100 2/50/200 2/75/150 2/200/200, 0 3 2 1",
    "5, 5/100/100 5/50/100 5/0/100 10/50/100, 0 1 3 2"
  })
  void displacedRequestsChangePlaces(int threshold, String requests, String order) {
    Batch batch = Batch.of(requests);
    assertThat(batch.arrange(DecodeFirstOrder.of(threshold))).isTrue();
    assertThat(batch.order).containsExactly(numbers(order, " "));
  }

  @ParameterizedTest
  @CsvSource({
    "1, 1/10/10 1/20/20 1/30/30",
    "1, 100/100/100 200/50/50 300/25/25",
    "1, 100/0/100",
    "1, 1/10/10 1/20/20 100/100/100 200/0/200",
    "4, 2/10/10 3/20/20 5/30/30 6/40/40"
  })
  void aBatchInOrderIsLeftAlone(int threshold, String requests) {
    Batch batch = Batch.of(requests);
    assertThat(batch.arrange(DecodeFirstOrder.of(threshold))).isFalse();
    assertThat(batch.order).isEqualTo(IntStream.range(0, batch.order.length).toArray());
  }

  @Test
  void withoutWishesABatchKeepsItsOrder() {
    Batch batch = Batch.of("100/0/100 1/10/10");
    assertThat(batch.arrange(DecodeFirstOrder.of(Vector.empty()))).isFalse();
    assertThat(batch.order).containsExactly(0, 1);
  }

  @Test
  void aNeighbourWithALargerThresholdFindsItsDecodesInFrontToo() {
    DecodeFirstOrder order =
        DecodeFirstOrder.of(
            Vector.of(
                DecodeFirstOrder.Wish.of("composite", 1), DecodeFirstOrder.Wish.of("stateful", 4)));
    assertThat(order.smallestThreshold()).containsExactly(1);
    Batch batch = Batch.of("4/100/100 512/1024/4096 4/200/200");
    assertThat(batch.arrange(order)).isTrue();
    assertThat(batch.order).containsExactly(0, 2, 1);
    Batch mixed = Batch.of("512/1024/4096 4/200/200 1/7/7 4/100/100 1/9/9");
    mixed.arrange(order);
    assertThat(Arrays.copyOf(mixed.order, 2)).containsExactlyInAnyOrder(2, 4);
    assertThat(Arrays.copyOf(mixed.order, 4)).containsExactlyInAnyOrder(1, 2, 3, 4);
  }

  @Test
  void groupsThatNoOrderSatisfiesAreRefusedByName() {
    DecodeFirstOrder.Wish extendsToo = new DecodeFirstOrder.Wish("sliding", 1, true);
    DecodeFirstOrder.Wish decodesOnly = new DecodeFirstOrder.Wish("stateful", 4, false);
    assertRefused(
            ErrorCode.INVALID_COMPOSITION,
            () -> DecodeFirstOrder.of(Vector.of(decodesOnly, extendsToo)))
        .contains("sliding")
        .contains("stateful");
  }

  @Test
  void setsThatLieInsideEachOtherAreNoContradiction() {
    DecodeFirstOrder order =
        DecodeFirstOrder.of(
            Vector.of(
                new DecodeFirstOrder.Wish("extends too", 4, true),
                new DecodeFirstOrder.Wish("decodes only", 1, false)));
    Batch batch = Batch.of("1/5/100 4/5/100 1/100/100 4/100/100");
    batch.arrange(order);
    assertThat(batch.order[0]).isEqualTo(2);
    assertThat(Arrays.copyOf(batch.order, 4)).containsExactlyInAnyOrder(0, 1, 2, 3);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, -1})
  void aThresholdIsPositive(int threshold) {
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> DecodeFirstOrder.of(threshold));
  }

  @Test
  void arraysThatAreTooShortAreRefused() {
    assertRefused(
        ErrorCode.SHAPE_MISMATCH,
        () -> DecodeFirstOrder.of(1).arrange(new int[2], new int[2], new int[1], 2, new int[2]));
  }

  @Test
  void randomBatchesFallIntoTheirRegionsWithTheFewestMoves() {
    Random random = new Random(SEED);
    for (int run = 0; run < 500; run++) {
      int count = random.nextInt(12);
      Batch batch = new Batch(count);
      for (int r = 0; r < count; r++) {
        batch.scheduled[r] = 1 + random.nextInt(4);
        batch.computed[r] = random.nextInt(3) * 10;
        batch.prompt[r] = 1 + random.nextInt(20);
      }
      int threshold = 1 + random.nextInt(3);
      batch.arrange(DecodeFirstOrder.of(threshold));
      int[] present = IntStream.range(0, count).map(r -> batch.region(r, threshold)).toArray();
      int[] wanted = present.clone();
      Arrays.sort(wanted);
      assertThat(Arrays.stream(batch.order).map(r -> present[r]).toArray())
          .as("run %d of seed %d", run, SEED)
          .isEqualTo(wanted);
      for (int place = 0; place < count; place++) {
        if (present[place] == wanted[place]) {
          assertThat(batch.order[place]).as("run %d of seed %d", run, SEED).isEqualTo(place);
        }
      }
    }
  }

  private static final class Batch {
    private final int[] scheduled;
    private final int[] computed;
    private final int[] prompt;
    private final int[] order;

    private Batch(int count) {
      scheduled = new int[count];
      computed = new int[count];
      prompt = new int[count];
      order = new int[count];
    }

    private static Batch of(String requests) {
      String[] all = requests.split(" ");
      Batch batch = new Batch(all.length);
      for (int r = 0; r < all.length; r++) {
        int[] request = numbers(all[r], "/");
        batch.scheduled[r] = request[0];
        batch.computed[r] = request[1];
        batch.prompt[r] = request[2];
      }
      return batch;
    }

    private boolean arrange(DecodeFirstOrder by) {
      return by.arrange(scheduled, computed, prompt, order.length, order);
    }

    private int region(int r, int threshold) {
      if (computed[r] == 0) {
        return 3;
      }
      if (scheduled[r] > threshold) {
        return 2;
      }
      return computed[r] >= prompt[r] ? 0 : 1;
    }
  }

  private static int[] numbers(String text, String separator) {
    return Arrays.stream(text.split(separator)).mapToInt(Integer::parseInt).toArray();
  }

  /** C18 and neighbours: whatever the smallest threshold is, each group finds its decodes first. */
  @ParameterizedTest
  @CsvSource({
    // Drafts of four behind a chunk; then of three kinds; then none that the composite takes.
    "1 4, 4/100/100 512/1024/4096 4/200/200, 0 2",
    "1 4 8, 8/90/90 512/1024/4096 1/7/7 4/200/200 512/0/512 8/50/50, 2 3 0 5",
    "1 4, 4/100/100 4/200/200 4/300/300, 0 1 2",
    // Verifications next to requests that have nothing computed, shorter than the threshold.
    "1 4, 3/0/3 4/200/200 1/0/1 2/40/40, 1 3",
    // A longer draft than anybody takes as a decode is none.
    "1 4, 5/100/100 4/200/200, 1"
  })
  void everyGroupFindsItsDecodesInFront(String thresholds, String requests, String first) {
    int[] wished = numbers(thresholds, " ");
    DecodeFirstOrder order =
        DecodeFirstOrder.of(
            Vector.ofAll(wished).map(t -> DecodeFirstOrder.Wish.of("group of " + t, t)));
    Batch batch = Batch.of(requests);
    batch.arrange(order);
    int[] decodes = numbers(first, " ");
    assertThat(Arrays.copyOf(batch.order, decodes.length))
        .containsExactlyInAnyOrder(Arrays.stream(decodes).boxed().toArray(Integer[]::new));
    for (int threshold : wished) {
      boolean decode = true;
      for (int r : batch.order) {
        boolean isOne = batch.computed[r] > 0 && batch.scheduled[r] <= threshold;
        assertThat(isOne && !decode).as("request %d for threshold %d", r, threshold).isFalse();
        decode = isOne;
      }
    }
  }
}
