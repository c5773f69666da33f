package bifocal.benchmarks.cpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

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
                Vector.empty(),
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
                Vector.empty(),
                Vector.empty()))
        .singleElement()
        .returns(1.5, Goal::reached)
        .returns(false, Goal::met);
  }

  @Test
  void whatWasNotMeasuredIsNoGoal() {
    assertThat(Goals.of(Vector.empty(), Vector.empty(), Vector.empty())).isEmpty();
  }

  @Test
  void dotProductsHaveTheirOwnPeakBesideTheHighest() {
    Row tiles =
        new Row(
            Works.PREFILL,
            "bf16",
            1,
            90,
            Option.none(),
            HashMap.empty(),
            Option.none(),
            Option.some(9.0),
            "GFLOP/s",
            "native-amx",
            HashMap.of("vdpbf16ps", 100.0, "tdpbf16ps", 1000.0),
            Option.none());

    assertThat(Goals.of(Vector.of(tiles), Vector.empty(), Vector.empty()))
        .extracting(Goal::reached, Goal::met)
        .containsExactlyInAnyOrder(tuple(9.0, false), tuple(90.0, true));
  }

  @Test
  void theSlowestStepOfACompositeCountsAgainstTheBestChildThatCanDoIt() {
    CompositeRow image =
        composite(
            7,
            HashMap.of(
                "lowered", 50.0, "split", 80.0, "whole batch", 100.0, "FLEX_ATTENTION", 100.0));
    CompositeRow text =
        composite(
            8,
            HashMap.of(
                "lowered",
                100.0,
                "split",
                100.0,
                "whole batch",
                100.0,
                "FLEX_ATTENTION",
                120.0,
                "CPU_ATTN",
                90.0));

    assertThat(Goals.of(Vector.empty(), Vector.empty(), Vector.of(image, text)))
        .extracting(Goal::what, Goal::reached, Goal::met)
        .containsExactlyInAnyOrder(
            tuple("composite on a trace, 1T: slowest step over the best child", 0.9, false),
            tuple("composite on a trace, 1T: split over whole batches", 200.0 / 180, true),
            tuple("composite on a trace, 1T: lowered over whole batches", 200.0 / 150, true));
  }

  @Test
  void stepsOfACompositeAreHeldAgainstTimesOfTheSameRound() {
    CompositeRow drifting =
        new CompositeRow(
            7,
            1,
            100,
            true,
            1,
            HashMap.of(
                "lowered", 100.0, "split", 100.0, "whole batch", 80.0, "FLEX_ATTENTION", 80.0),
            HashMap.of("whole batch", 1.02, "FLEX_ATTENTION", 1.01),
            1.03);

    assertThat(Goals.of(Vector.empty(), Vector.empty(), Vector.of(drifting)))
        .extracting(Goal::reached)
        .containsExactly(1.01, 1.03, 1.02);
  }

  private static CompositeRow composite(int step, Map<String, Double> times) {
    return new CompositeRow(
        step,
        1,
        100,
        times.size() == 4,
        1,
        times,
        times.mapValues(time -> time / times.get("lowered").get()),
        times.get("whole batch").get() / times.get("split").get());
  }

  @Test
  void ratesThatFallAreTimesThatGrowTooFast() {
    assertThat(
            Goals.of(
                Vector.of(
                    row("decode growth 1024", "bf16", 1, 12),
                    row("decode growth 65536", "bf16", 1, 10)),
                Vector.empty(),
                Vector.empty()))
        .singleElement()
        .returns(1.2, Goal::reached)
        .returns(false, Goal::met);
  }
}
