package bifocal.cuda.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import bifocal.core.backend.BackendName;
import bifocal.core.bench.ChildTime;
import bifocal.core.bench.ChildTime.Phase;
import bifocal.core.cache.KvCacheDtype;
import io.vavr.collection.List;
import io.vavr.collection.Seq;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Workloads that stand for classes of requests. */
class CalibratedWorkTest {
  private static final BackendName CHILD = BackendName.of("CHILD");

  @Test
  void aDecodeIsTimedForItsKeysAndHeads() {
    GpuWork work = GpuWork.decode(32, 8, 128, 4, 1000, KvCacheDtype.AUTO);
    ChildTime time = new CalibratedWork(work).time(CHILD, 2);

    assertThat(time.phase()).isEqualTo(Phase.DECODE);
    assertThat(time.queryLen()).isEqualTo(1);
    assertThat(time.seqLen()).isEqualTo(1000);
    assertThat(time.nanosPerPair()).isCloseTo(2e6 / (32 * 4 * 1000), within(1e-9));
  }

  @Test
  void imagesAreTimedForTheCausalPairsOfTheirPrompt() {
    GpuWork work = GpuWork.prefill(32, 16, 256, 8, 2048);

    assertThat(new CalibratedWork(work.withImages()).phase()).isEqualTo(Phase.IMAGE);
    assertThat(new CalibratedWork(work).phase()).isEqualTo(Phase.PREFILL);
    assertThat(new CalibratedWork(work.withImages()).time(CHILD, 1).nanosPerPair())
        .isEqualTo(new CalibratedWork(work).time(CHILD, 1).nanosPerPair());
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void everyHeadSizeIsMeasuredInEveryPhase(boolean quick) {
    Seq<CalibratedWork> plan = CalibratedWork.plan(quick);

    assertThat(plan.map(planned -> planned.work().headSize())).contains(256, 512);
    plan.map(planned -> planned.work().headSize())
        .distinct()
        .forEach(
            size ->
                assertThat(
                        plan.filter(planned -> planned.work().headSize() == size)
                            .map(CalibratedWork::phase)
                            .distinct())
                    .containsExactlyInAnyOrderElementsOf(List.of(Phase.values())));
  }
}
