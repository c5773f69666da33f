package bifocal.benchmarks.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.benchmarks.cpu.CpuCalibration.Measured;
import bifocal.benchmarks.cpu.Work.Request;
import bifocal.core.bench.BenchmarkRequest;
import bifocal.core.bench.ChildTime;
import bifocal.core.bench.ChildTime.Phase;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import io.vavr.collection.List;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.ArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class CpuCalibrationTest {
  private static final Measured SMALL_IMAGE =
      new Measured(
          Phase.IMAGE,
          Work.prompts("small image", DType.FP32, 64, new Request(64, 64, 10, 40))
              .withMask(AttentionMask.CAUSAL.withImages(ImageMask.OVERRIDE)));
  private static final Measured SMALL_DECODE =
      new Measured(Phase.DECODE, Work.decodes("small decode", DType.FP32, 2, 96));

  @Test
  void bothChildrenAreTimedForEachClass() {
    java.util.List<String> progress = new ArrayList<>();

    Seq<ChildTime> times =
        new CpuCalibration(1)
            .run(
                Vector.of(SMALL_IMAGE, SMALL_DECODE),
                new BenchmarkRequest(true, Option.none(), Option.none(), progress::add));

    assertThat(times.map(time -> time.child() + " " + time.phase() + " " + time.queryLen()))
        .containsExactlyInAnyOrder(
            "FLEX_ATTENTION IMAGE 64",
            "CPU_ATTN IMAGE 64",
            "FLEX_ATTENTION DECODE 1",
            "CPU_ATTN DECODE 1");
    assertThat(times).allMatch(time -> time.nanosPerPair() > 0 && time.nanosPerPair() < 1e6);
    assertThat(progress).containsExactly("small image, fp32", "small decode, fp32");
  }

  @Test
  void whatIsNotWantedIsNotTimed() {
    assertThat(
            new CpuCalibration(1)
                .run(
                    Vector.of(SMALL_IMAGE, SMALL_DECODE),
                    new BenchmarkRequest(true, Option.some("decode"), Option.none(), line -> {})))
        .extracting(ChildTime::phase)
        .containsOnly(Phase.DECODE);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void everyHeadSizeIsMeasuredInEveryPhase(boolean quick) {
    Seq<Measured> plan = CpuCalibration.plan(quick);

    plan.map(measured -> measured.work().headSize() + " " + measured.work().dtype())
        .distinct()
        .forEach(
            kind ->
                assertThat(
                        plan.filter(
                                measured ->
                                    (measured.work().headSize() + " " + measured.work().dtype())
                                        .equals(kind))
                            .map(Measured::phase)
                            .distinct())
                    .containsExactlyInAnyOrderElementsOf(List.of(Phase.values())));
    assertThat(plan.map(measured -> measured.work().headSize())).contains(256, 512);
  }

  @Test
  void pairsAreCountedCausallyForEachHeadAndRequest() {
    assertThat(SMALL_DECODE.headPairs()).isEqualTo(2 * 96 * Work.HEADS);
    assertThat(SMALL_IMAGE.headPairs()).isEqualTo(64 * 65 / 2.0 * Work.HEADS);
  }
}
