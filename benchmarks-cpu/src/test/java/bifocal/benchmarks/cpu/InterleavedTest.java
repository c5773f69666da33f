package bifocal.benchmarks.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.benchmarks.cpu.Interleaved.Entrant;
import bifocal.benchmarks.cpu.Interleaved.Turns;
import io.vavr.collection.HashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Vector;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class InterleavedTest {
  @Test
  void theMedianIsTheMiddleOrBetweenTheTwo() {
    assertThat(Interleaved.median(List.of(5.0, 1.0, 3.0))).isEqualTo(3);
    assertThat(Interleaved.median(List.of(5.0, 1.0, 3.0, 4.0))).isEqualTo(3.5);
  }

  @Test
  void whatTakesTwiceTheTimeHasHalfTheRate() {
    Map<String, Double> medians =
        new Interleaved(2, 3, 1)
            .medians(
                Vector.of(
                    new Entrant("short", 1, () -> LockSupport.parkNanos(20_000_000)),
                    new Entrant("long", 1, () -> LockSupport.parkNanos(80_000_000))));

    assertThat(medians.get("short").get() / medians.get("long").get()).isBetween(1.5, 8.0);
  }

  @Test
  void whatHoldsUpARoundHoldsUpNoRatioOfTwoTimes() {
    Turns turns =
        new Turns(HashMap.of("fast", List.of(10.0, 5.0, 2.0), "slow", List.of(8.0, 4.0, 2.0)));

    assertThat(turns.timeOver("slow", "fast")).isEqualTo(1.25);
    assertThat(turns.medians().get("fast")).contains(5.0);
  }

  @Test
  void eachRoundBeginsWithAnother() {
    List<String> order = new ArrayList<>();

    new Interleaved(2, 2, Long.MAX_VALUE)
        .medians(
            Vector.of("a", "b", "c").map(name -> new Entrant(name, 1, () -> take(name, order))));

    assertThat(order)
        .as("warming up, then two rounds")
        .containsExactly("a", "b", "c", "a", "b", "c", "b", "c", "a");
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 6, 7})
  void everybodyComesBehindEachOtherAsOften(int entrants) {
    int[] begins = new int[entrants];
    int[][] behind = new int[entrants][entrants];
    for (int round = 0; round < 2 * entrants; round++) {
      Set<Integer> seen = new HashSet<>();
      for (int place = 0; place < entrants; place++) {
        int turn = Interleaved.turn(round, place, entrants);
        seen.add(turn);
        if (place == 0) {
          begins[turn]++;
        } else {
          behind[turn][Interleaved.turn(round, place - 1, entrants)]++;
        }
      }
      assertThat(seen).as("round %d", round).hasSize(entrants);
    }
    assertThat(begins).containsOnly(2);
    for (int turn = 0; turn < entrants; turn++) {
      behind[turn][turn] += 2;
      assertThat(behind[turn]).as("whom %d comes behind", turn).containsOnly(2);
    }
  }

  @Test
  void onlyThreadsOfAnotherAreGivenTimeToGoToSleep() {
    assertThat(nanos(false)).isGreaterThanOrEqualTo(2 * 20 * 3_000_000L);
    assertThat(nanos(true)).isLessThan(2 * 20 * 3_000_000L);
  }

  /** Of twenty rounds of two entrants that do nothing. */
  private static long nanos(boolean sameThreads) {
    long start = System.nanoTime();
    new Interleaved(2, 20, Long.MAX_VALUE, 1, sameThreads)
        .turns(Vector.of(new Entrant("a", 1, () -> {}), new Entrant("b", 1, () -> {})));
    return System.nanoTime() - start;
  }

  private static void take(String name, List<String> order) {
    if (order.isEmpty() || !order.getLast().equals(name)) {
      order.add(name);
    }
    LockSupport.parkNanos(25_000_000);
  }
}
