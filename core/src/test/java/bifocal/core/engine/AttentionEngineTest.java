package bifocal.core.engine;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.core.workspace.WorkspaceRegion;
import io.vavr.collection.Vector;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(20)
class AttentionEngineTest {
  private static final KvCacheSpec CACHE =
      new KvCacheSpec(KvLayouts.NHD, KvCacheDtype.BFLOAT16, 16, 1, 8, 8, KvScales.ONE);
  private static final KvCacheSpec WIDE_BLOCKS =
      new KvCacheSpec(KvLayouts.NHD, KvCacheDtype.BFLOAT16, 32, 1, 8, 8, KvScales.ONE);
  private static final AttentionLayerSpec SPEC =
      AttentionLayerSpec.Dense.decoder(1, 1, 8, DType.BF16, AttentionMask.CAUSAL);
  private static final TensorView ROWS =
      TensorView.ofHost(MemorySegment.ofArray(new short[32]), DType.BF16, 4, 1, 8);

  private final RecordingBackend sliding = new RecordingBackend("SLIDING");
  private final RecordingBackend full = new RecordingBackend("FULL");

  @Test
  void aStepRunsEveryGroupOnTheEnginesThread() {
    try (AttentionEngine engine = open()) {
      Thread ran =
          engine.run(
              step -> {
                engine.groups().forEach(group -> attend(group, step));
                return Thread.currentThread();
              });
      assertThat(ran).isNotSameAs(Thread.currentThread());
    }
    assertThat(sliding.log).contains("build", "write impl 0", "forward impl 0 of build 0");
    assertThat(full.log).contains("build", "write impl 0", "forward impl 0 of build 0");
  }

  @Test
  void stepsAreNumberedAndEndWithTheirCall() {
    try (AttentionEngine engine = open()) {
      StepContext first = engine.run(step -> step);
      assertThat(engine.<Long>run(StepContext::step)).isEqualTo(first.step() + 1);
      assertRefused(ErrorCode.CLOSED, () -> first.workspace().lease(1, 1));
    }
  }

  @Test
  void groupsAreFoundByName() {
    try (AttentionEngine engine = open()) {
      assertThat(engine.group("full").plan().backend()).isSameAs(full);
      assertThat(engine.group("full").cache(0).numBlocks()).isEqualTo(5);
      assertRefused(ErrorCode.INVALID_PARAMETER, () -> engine.group("wide"))
          .contains("sliding, full");
    }
  }

  @Test
  void aRowBeginsWithWhatEveryGroupHasCached() {
    try (AttentionEngine engine =
        open(new GroupPlan(LayerGroup.of("full", SPEC), full, WIDE_BLOCKS))) {
      assertThat(engine.begin(0, new int[49])).isZero();
      engine.groups().forEach(group -> group.requests().schedule(new int[] {49}, ImageRanges.NONE));
      engine.publish();
      // 48 tokens are in whole blocks of 16, and 32 in whole blocks of 32.
      assertThat(engine.begin(1, new int[60])).isEqualTo(32);
      assertThat(engine.groups().map(group -> group.requests().tokens(1))).containsOnly(32);

      engine.release(1);
      assertThat(engine.groups().map(group -> group.requests().tokens(1))).containsOnly(0);
    }
  }

  @Test
  void twoImagesAreNeverTakenForEachOther() {
    try (AttentionEngine engine = open()) {
      engine.begin(0, new int[40], new SequenceImage(20, 30, "one"));
      engine.groups().forEach(group -> group.requests().schedule(new int[] {40}, ImageRanges.NONE));
      engine.publish();
      assertThat(engine.begin(1, new int[40], new SequenceImage(20, 30, "other"))).isEqualTo(16);
      engine.release(1);
      assertThat(engine.begin(1, new int[40], new SequenceImage(20, 30, "one"))).isEqualTo(32);
    }
  }

  @Test
  void onlyAGroupWhoseMaskLooksAtImagesIsToldOfThem() {
    AttentionLayerSpec seeing =
        AttentionLayerSpec.Dense.decoder(
            1, 1, 8, DType.BF16, AttentionMask.CAUSAL.withImages(ImageMask.OVERRIDE));
    try (AttentionEngine engine =
        open(new GroupPlan(LayerGroup.of("seeing", seeing), full, CACHE))) {
      engine.begin(0, new int[20], new SequenceImage(2, 9, "picture"));
      assertThat(engine.group("seeing").schedule(20, 0).images().count(0)).isEqualTo(1);
      assertThat(engine.group("sliding").schedule(20, 0).images().isEmpty()).isTrue();
    }
  }

  @Test
  void tokensNamedLaterAreFoundInEveryGroup() {
    try (AttentionEngine engine = open()) {
      engine.begin(0, new int[15]);
      engine.groups().forEach(group -> group.requests().schedule(new int[] {16}, ImageRanges.NONE));
      engine.append(0, 0);
      engine.publish();
      assertThat(engine.begin(1, new int[17])).isEqualTo(16);
    }
  }

  @Test
  void aRowThatCannotBeginInOneGroupBeginsInNone() {
    try (AttentionEngine engine = open()) {
      engine.group("full").requests().schedule(new int[] {0, 1}, ImageRanges.NONE);
      assertRefused(ErrorCode.INVALID_PARAMETER, () -> engine.begin(1, new int[17]));
      assertThat(engine.group("sliding").requests().tokens(1)).isZero();
      assertThat(engine.group("full").requests().tokens(1)).isEqualTo(1);
    }
  }

  @Test
  void aStepBuiltOnAnotherThreadIsRefused() {
    try (AttentionEngine engine = open()) {
      StepContext step = engine.run(context -> context);
      EngineGroup group = engine.group("full");
      CommonAttentionMetadata batch = group.requests().schedule(new int[] {4}, ImageRanges.NONE);
      assertRefused(ErrorCode.WRONG_THREAD, () -> group.begin(step, batch));
    }
  }

  @Test
  void closingReleasesEverythingOnce() {
    AttentionEngine engine = open();
    KvCacheView cache = engine.group("full").cache(0);
    engine.close();
    engine.close();

    assertThat(full.log).containsExactly("builder", "impl 0", "close impl 0", "close builder");
    assertRefused(ErrorCode.CLOSED, cache::requireOpen);
    assertRefused(ErrorCode.CLOSED, () -> engine.run(step -> step));
  }

  @Test
  void closingFromInsideAStepIsRefusedAndClosesNothing() {
    AttentionEngine engine = open();
    assertRefused(
        ErrorCode.IN_USE,
        () ->
            engine.run(
                step -> {
                  engine.close();
                  return step;
                }));
    engine.run(
        step -> {
          attend(engine.group("full"), step);
          return step;
        });
    engine.close();
    assertThat(full.log).contains("forward impl 0 of build 0");
  }

  @Test
  void closingWaitsForTheRunningStep() throws InterruptedException {
    AttentionEngine engine = open();
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch closing = new CountDownLatch(1);
    Thread host =
        Thread.ofPlatform()
            .start(
                () ->
                    engine.run(
                        step -> {
                          running.countDown();
                          await(closing);
                          attend(engine.group("full"), step);
                          return step;
                        }));
    running.await();
    closing.countDown();
    engine.close();
    host.join();

    assertThat(full.log.indexOf("forward impl 0 of build 0"))
        .isBetween(0, full.log.indexOf("close impl 0"));
  }

  @Test
  void aStepThatFailsLeavesTheNextOneUnharmed() {
    try (AttentionEngine engine = open()) {
      assertThatThrownBy(
              () ->
                  engine.run(
                      step -> {
                        throw new IllegalStateException("host");
                      }))
          .hasMessage("host");
      engine.run(
          step -> {
            attend(engine.group("full"), step);
            return step;
          });
    }
    assertThat(full.log).contains("forward impl 0 of build 0");
  }

  @Test
  void whatWasOpenedBeforeAFailureIsClosedAgain() {
    full.failing.add("builder");

    assertThatThrownBy(this::open).hasMessage("builder");
    assertThat(sliding.log).containsExactly("builder", "impl 0", "close impl 0", "close builder");
  }

  @Test
  void everythingElseIsClosedWhenOnePartFailsTo() {
    full.failing.add("close builder");
    AttentionEngine engine = open();
    KvCacheView cache = engine.group("full").cache(0);

    assertRefused(ErrorCode.INTERNAL, engine::close);
    assertThat(sliding.log).endsWith("close impl 0", "close builder");
    assertRefused(ErrorCode.CLOSED, cache::requireOpen);
  }

  private AttentionEngine open() {
    return open(new GroupPlan(LayerGroup.of("full", SPEC), full, CACHE));
  }

  private AttentionEngine open(GroupPlan second) {
    sliding.needing(limits -> scratch(512));
    full.needing(limits -> scratch(1024));
    return AttentionEngine.open(
        EnginePlan.of(
            Vector.of(new GroupPlan(LayerGroup.of("sliding", SPEC), sliding, CACHE), second),
            Vector.of(new BatchLimits(1, 64, 64), new BatchLimits(2, 2, 16))),
        5);
  }

  private static WorkspacePlan scratch(long bytes) {
    return WorkspacePlan.of(
        64, new WorkspaceRegion("scratch", bytes, WorkspaceRegion.State.SCRATCH));
  }

  private static void attend(EngineGroup group, StepContext step) {
    GroupStep<?> running =
        group.begin(step, group.requests().schedule(new int[] {4}, ImageRanges.NONE));
    running.writeKv(0, new KvInput.Dense(ROWS, ROWS), group.cache(0));
    running.forward(0, ROWS, group.cache(0), AttentionOutput.of(ROWS));
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}
