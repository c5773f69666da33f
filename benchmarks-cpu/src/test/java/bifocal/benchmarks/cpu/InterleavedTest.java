package bifocal.benchmarks.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.benchmarks.cpu.Interleaved.Entrant;
import io.vavr.collection.Map;
import io.vavr.collection.Vector;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

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
  void eachRoundBeginsWithAnother() {
    List<String> order = new ArrayList<>();

    new Interleaved(2, 2, Long.MAX_VALUE)
        .medians(
            Vector.of("a", "b", "c").map(name -> new Entrant(name, 1, () -> take(name, order))));

    assertThat(order)
        .as("warming up, then two rounds")
        .containsExactly("a", "b", "c", "a", "b", "c", "b", "c", "a");
  }

  private static void take(String name, List<String> order) {
    if (order.isEmpty() || !order.getLast().equals(name)) {
      order.add(name);
    }
    LockSupport.parkNanos(25_000_000);
  }
}
