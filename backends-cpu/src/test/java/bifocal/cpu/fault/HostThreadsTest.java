package bifocal.cpu.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import bifocal.core.backend.LaunchContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvScales;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cpu.attention.CpuRuntime;
import bifocal.cpu.attention.FlexAttentionBackend;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

/** Threads as hosts have them, and pools that are too small. */
final class HostThreadsTest {

  private static SmallEngine engine(int numBlocks) {
    return new SmallEngine(
        new FlexAttentionBackend(CpuRuntime.ofThisJvm()),
        SmallEngine.LAYER,
        KvScales.ONE,
        numBlocks);
  }

  /** Prefill with an image, then decodes, each compared with the reference. */
  private static boolean conversation() {
    try (SmallEngine engine = engine(20)) {
      LaunchContext launch = SmallEngine.launch();
      CommonAttentionMetadata prefill = engine.admit(new int[][] {{3, 14}, {}}, 40, 7);
      engine.run(launch, prefill);
      boolean right = engine.isRight(prefill);
      for (int step = 0; step < 3; step++) {
        CommonAttentionMetadata decode = engine.admit(1, 1);
        engine.run(launch, decode);
        right &= engine.isRight(decode);
      }
      return right;
    }
  }

  @Test
  void virtualThreadsRunEnginesOfTheirOwnSideBySide() throws Exception {
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<Boolean>> results = new ArrayList<>();
      for (int i = 0; i < 8; i++) {
        results.add(threads.submit((Callable<Boolean>) HostThreadsTest::conversation));
      }
      for (Future<Boolean> result : results) {
        assertThat(result.get()).isTrue();
      }
    }
  }

  @Test
  void anInterruptedThreadRunsItsStepAndStaysInterrupted() {
    Thread.currentThread().interrupt();
    try {
      assertThat(conversation()).isTrue();
      assertThat(Thread.currentThread().isInterrupted()).isTrue();
    } finally {
      Thread.interrupted();
    }
  }

  @Test
  void anotherThreadThanTheContextsIsRefused() throws Exception {
    try (SmallEngine engine = engine(20);
        ExecutorService other = Executors.newVirtualThreadPerTaskExecutor()) {
      LaunchContext launch = other.submit(SmallEngine::launch).get();
      CommonAttentionMetadata batch = engine.admit(4);
      assertThat(refusal(() -> engine.run(launch, batch))).isEqualTo(ErrorCode.WRONG_THREAD);
      engine.run(SmallEngine.launch(), batch);
      assertThat(engine.isRight(batch)).isTrue();
    }
  }

  /** Memory that only another thread may use could be released by it at any time. */
  @Test
  void memoryOfAnotherThreadsArenaIsRefused() throws Exception {
    try (SmallEngine engine = engine(20);
        ExecutorService owner = Executors.newSingleThreadExecutor()) {
      Arena confined = owner.submit(Arena::ofConfined).get();
      CommonAttentionMetadata batch = engine.admit(4);
      long bytes = engine.queryBytes();
      var foreign = owner.submit(() -> confined.allocate(bytes, 64)).get();
      assertThat(refusal(() -> engine.runWithQueries(SmallEngine.launch(), batch, foreign)))
          .isEqualTo(ErrorCode.WRONG_THREAD);
      owner.submit(confined::close).get();
      assertThat(refusal(() -> engine.runWithQueries(SmallEngine.launch(), batch, foreign)))
          .isEqualTo(ErrorCode.CLOSED);
      engine.run(SmallEngine.launch(), batch);
      assertThat(engine.isRight(batch)).isTrue();
    }
  }

  @Test
  void aPoolWithoutRoomRefusesAndWhatRunsRunsOn() {
    try (SmallEngine engine = engine(5)) {
      LaunchContext launch = SmallEngine.launch();
      CommonAttentionMetadata first = engine.admit(33, 40);
      engine.run(launch, first);
      assertThat(engine.blocks.free()).isZero();
      assertThat(refusal(() -> engine.admit(32))).isEqualTo(ErrorCode.POOL_EXHAUSTED);
      assertThat(engine.blocks.free()).isZero();
      assertThat(engine.table.tokens(0)).isEqualTo(33);
      CommonAttentionMetadata decode = engine.admit(1, 1);
      engine.run(launch, decode);
      assertThat(engine.isRight(decode)).isTrue();
      engine.table.release(1);
      CommonAttentionMetadata more = engine.admit(32);
      engine.run(launch, more);
      assertThat(engine.isRight(more)).isTrue();
    }
  }

  private static ErrorCode refusal(Runnable call) {
    return catchThrowableOfType(BifocalException.class, call::run).code();
  }
}
