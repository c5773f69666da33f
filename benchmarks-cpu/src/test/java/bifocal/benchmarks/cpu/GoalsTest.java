package bifocal.benchmarks.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import io.vavr.collection.HashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import org.junit.jupiter.api.Test;

final class GoalsTest {
  private static Row row(String work, String dtype, int threads, double ours) {
    Map<String, Double> peers = HashMap.of("libtorch", 100.0);
    return new Row(
        work,
        dtype,
        threads,
        ours,
        Option.none(),
        peers,
        Option.some(ours / 100),
        Option.some(ours / 10),
        "GB/s",
        "scalar",
        HashMap.empty(),
        Option.none());
  }

  @Test
  void oneByteCachesAreComparedByTokensNotByBytes() {
    assertThat(
            Goals.of(
                Vector.of(
                    row(Works.DECODE, "bf16", 1, 100), row(Works.DECODE, "bf16/fp8_e4m3", 1, 75)),
                Vector.empty()))
        .filteredOn(goal -> goal.what().contains("tokens"))
        .singleElement()
        .returns(1.5, Goal::reached)
        .returns(true, Goal::met);
  }

  @Test
  void aMaskIsHeldAgainstTheWorkWithoutIt() {
    assertThat(
            Goals.of(
                Vector.of(
                    row(Works.CAUSAL_LONG, "bf16", 1, 900), row(Works.WINDOW, "bf16", 1, 600)),
                Vector.empty()))
        .singleElement()
        .returns(1.5, Goal::reached)
        .returns(false, Goal::met);
  }

  @Test
  void whatWasNotMeasuredIsNoGoal() {
    assertThat(Goals.of(Vector.empty(), Vector.empty())).isEmpty();
  }

  @Test
  void ratesThatFallAreTimesThatGrowTooFast() {
    assertThat(
            Goals.of(
                Vector.of(
                    row("decode growth 1024", "bf16", 1, 12),
                    row("decode growth 65536", "bf16", 1, 10)),
                Vector.empty()))
        .singleElement()
        .returns(1.2, Goal::reached)
        .returns(false, Goal::met);
  }
}
