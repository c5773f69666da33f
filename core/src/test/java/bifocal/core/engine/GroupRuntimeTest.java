package bifocal.core.engine;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.HostLaunchContext;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.Batches;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.core.workspace.WorkspaceRegion;
import io.vavr.collection.Vector;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GroupRuntimeTest {
  private static final AttentionLayerSpec.Dense SPEC =
      AttentionLayerSpec.Dense.decoder(2, 1, 8, DType.FP32, AttentionMask.CAUSAL);
  private static final LayerGroup GROUP =
      new LayerGroup("sliding", SPEC, Vector.of("layer.0", "layer.1"));
  private static final KvCacheSpec CACHE =
      new KvCacheSpec(KvLayouts.NHD, KvCacheDtype.FLOAT32, 4, 1, 8, 8, KvScales.ONE);
  private static final TensorView Q =
      TensorView.ofHost(MemorySegment.ofArray(new float[16]), DType.FP32, 1, 2, 8);
  private static final AttentionOutput OUT = AttentionOutput.of(Q);

  private final LaunchContext launch = new HostLaunchContext(AttentionObserver.NONE);
  private final RecordingBackend backend = new RecordingBackend("RECORDING");
  private final KvCacheView view = view(5);
  private final CommonAttentionMetadata batch =
      CommonAttentionMetadata.builder(
              new int[] {0, 1}, new int[] {6}, Batches.table(new int[] {1, 4}), Batches.slots(17L))
          .build();

  @Test
  void aGroupHasOneBuilderAndOneImplementationForEachLayer() {
    List<String> asked = new ArrayList<>();
    GroupRuntime.open(
        backend,
        GROUP,
        CACHE,
        "",
        layer -> {
          asked.add(layer);
          return LayerParameters.NONE;
        });
    assertThat(backend.log).containsExactly("builder", "impl 0", "impl 1");
    assertThat(asked).containsExactly("layer.0", "layer.1");
  }

  @Test
  void aStepBuildsOnceAndRunsEachLayerOnItsOwnImplementation() {
    GroupRuntime<RecordingBackend.Metadata> runtime = GroupRuntime.open(backend, GROUP, CACHE);
    backend.log.clear();
    GroupStep<RecordingBackend.Metadata> step = runtime.step(context(), batch);
    step.writeKv(0, new KvInput.Dense(Q, Q), view);
    step.forward(0, Q, view, OUT);
    step.writeKv(1, new KvInput.Dense(Q, Q), view);
    step.forward(1, Q, view, OUT);
    assertThat(backend.log)
        .containsExactly(
            "build",
            "write impl 0",
            "forward impl 0 of build 0",
            "write impl 1",
            "forward impl 1 of build 0");
    assertThat(step.graphKey().route()).isEqualTo("RECORDING");
  }

  @Test
  void severalStepsMayBeAliveAtOnce() {
    GroupRuntime<RecordingBackend.Metadata> runtime = GroupRuntime.open(backend, GROUP, CACHE);
    GroupStep<RecordingBackend.Metadata> first = runtime.step(context(), batch);
    GroupStep<RecordingBackend.Metadata> second = runtime.step(context(), batch);
    backend.log.clear();
    second.forward(0, Q, view, OUT);
    first.forward(0, Q, view, OUT);
    assertThat(backend.log)
        .containsExactly("forward impl 0 of build 1", "forward impl 0 of build 0");
  }

  @Test
  void closingClosesEachPartOnceTheLastFirst() {
    GroupRuntime<RecordingBackend.Metadata> runtime = GroupRuntime.open(backend, GROUP, CACHE);
    backend.log.clear();
    runtime.close();
    runtime.close();
    assertThat(backend.log).containsExactly("close impl 1", "close impl 0", "close builder");
    assertRefused(ErrorCode.CLOSED, () -> runtime.build(context(), batch)).contains("sliding");
  }

  @Test
  void everyPartIsClosedEvenWhenOneFails() {
    GroupRuntime<RecordingBackend.Metadata> runtime = GroupRuntime.open(backend, GROUP, CACHE);
    backend.log.clear();
    backend.failing.add("close impl 1");
    backend.failing.add("close builder");
    assertThatThrownBy(runtime::close)
        .isInstanceOf(BifocalException.class)
        .hasRootCauseMessage("close impl 1")
        .satisfies(e -> assertThat(e.getSuppressed()).hasSize(1));
    assertThat(backend.log).containsExactly("close impl 1", "close impl 0", "close builder");
  }

  @Test
  void aGroupThatCannotBeOpenedIsClosedAsFarAsItWas() {
    backend.failing.add("impl 1");
    backend.failing.add("close impl 0");
    assertThatThrownBy(() -> GroupRuntime.open(backend, GROUP, CACHE))
        .hasMessage("impl 1")
        .satisfies(e -> assertThat(e.getSuppressed()[0]).hasMessage("close impl 0"));
    assertThat(backend.log)
        .containsExactly("builder", "impl 0", "impl 1", "close impl 0", "close builder");
  }

  @Test
  void blocksAndSlotsOutsideTheCacheAreRefusedBeforeAnyKernel() {
    GroupRuntime<RecordingBackend.Metadata> runtime = GroupRuntime.open(backend, GROUP, CACHE);
    GroupStep<RecordingBackend.Metadata> step = runtime.step(context(), batch);
    backend.log.clear();
    assertRefused(ErrorCode.BLOCK_OUT_OF_RANGE, () -> step.forward(0, Q, view(4), OUT));
    assertRefused(
        ErrorCode.BLOCK_OUT_OF_RANGE, () -> step.writeKv(0, new KvInput.Dense(Q, Q), view(4)));
    assertThat(backend.log).isEmpty();
  }

  @Test
  void aLayerWithoutACacheHasNoBlocksToCheck() {
    LayerGroup encoder =
        LayerGroup.of(
            "encoder",
            SPEC.withType(AttentionType.ENCODER_ONLY).withMask(AttentionMask.BIDIRECTIONAL));
    CommonAttentionMetadata tableless =
        CommonAttentionMetadata.builder(
                new int[] {0, 9}, new int[] {9}, Batches.table(1, 0), Batches.slots(0))
            .build();
    GroupRuntime<RecordingBackend.Metadata> runtime = GroupRuntime.open(backend, encoder, CACHE);
    assertThat(runtime.step(context(), tableless).batch()).isSameAs(tableless);
  }

  @Test
  void aCacheOfAnotherContractIsRefused() {
    KvCacheSpec other =
        new KvCacheSpec(KvLayouts.HND, KvCacheDtype.FLOAT32, 4, 1, 8, 8, KvScales.ONE);
    KvCacheView foreign =
        KvCacheView.wrap(MemorySegment.ofArray(new byte[(int) (5 * other.blockBytes())]), other);
    GroupRuntime<RecordingBackend.Metadata> runtime = GroupRuntime.open(backend, GROUP, CACHE);
    GroupStep<RecordingBackend.Metadata> step = runtime.step(context(), batch);
    assertRefused(ErrorCode.KV_INCOMPATIBLE, () -> step.forward(0, Q, foreign, OUT));
  }

  @Test
  void aCacheWhoseMemoryWasReleasedIsRefused() {
    Arena arena = Arena.ofConfined();
    KvCacheView released = KvCacheView.wrap(arena.allocate(5 * CACHE.blockBytes(), 64), CACHE);
    GroupRuntime<RecordingBackend.Metadata> runtime = GroupRuntime.open(backend, GROUP, CACHE);
    GroupStep<RecordingBackend.Metadata> step = runtime.step(context(), batch);
    arena.close();
    assertRefused(ErrorCode.CLOSED, () -> step.forward(0, Q, released, OUT));
    assertRefused(ErrorCode.CLOSED, () -> step.writeKv(0, new KvInput.Dense(Q, Q), released));
  }

  @Test
  void anotherThreadIsRefused() throws InterruptedException {
    GroupRuntime<RecordingBackend.Metadata> runtime = GroupRuntime.open(backend, GROUP, CACHE);
    GroupStep<RecordingBackend.Metadata> step = runtime.step(context(), batch);
    AtomicReference<Throwable> thrown = new AtomicReference<>();
    Thread.ofPlatform()
        .start(
            () -> {
              try {
                step.forward(0, Q, view, OUT);
              } catch (RuntimeException e) {
                thrown.set(e);
              }
            })
        .join();
    assertThat(thrown.get())
        .isInstanceOfSatisfying(
            BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.WRONG_THREAD));
  }

  @Test
  void layersOutsideTheGroupAreRefused() {
    GroupRuntime<RecordingBackend.Metadata> runtime = GroupRuntime.open(backend, GROUP, CACHE);
    GroupStep<RecordingBackend.Metadata> step = runtime.step(context(), batch);
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> step.forward(2, Q, view, OUT))
        .contains("0..1");
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> step.forward(-1, Q, view, OUT));
  }

  private StepContext context() {
    Workspace workspace = Workspace.wrap(MemorySegment.ofArray(new byte[1]), WorkspacePlan.NONE, 1);
    return new StepContext(launch, workspace.openStep(), 0);
  }

  private static KvCacheView view(int blocks) {
    return KvCacheView.wrap(
        MemorySegment.ofArray(new byte[(int) (blocks * CACHE.blockBytes())]), CACHE);
  }

  /** C12, neighbour: a backend that is no composite fails half-way, in each way it can. */
  @ParameterizedTest
  @ValueSource(strings = {"", "group/"})
  void countersOfAStepThatFailedAreZeroedBeforeTheNext(String prefix) {
    WorkspacePlan own =
        WorkspacePlan.of(0, new WorkspaceRegion("counters", 64, WorkspaceRegion.State.ZEROED));
    WorkspacePlan plan = prefix.isEmpty() ? own : WorkspacePlan.overlay(prefix, own, "other/", own);
    Workspace workspace = Workspace.wrap(MemorySegment.ofArray(new long[256]), plan, 1);
    GroupRuntime<RecordingBackend.Metadata> runtime =
        GroupRuntime.open(backend, GROUP, CACHE, prefix, layer -> LayerParameters.NONE);
    zero(workspace, prefix);

    backend.failing.add("forward impl 0 of build 0");
    for (boolean inBuild : new boolean[] {false, true}) {
      backend.building(
          step -> {
            step.workspace().region("counters").fill((byte) 7);
            if (inBuild) {
              throw new IllegalStateException("half-way");
            }
          });
      assertThatThrownBy(() -> step(runtime, workspace, s -> s.forward(0, Q, view, OUT)))
          .isInstanceOf(IllegalStateException.class);
      backend.building(
          step ->
              assertThat(step.workspace().region("counters").toArray(ValueLayout.JAVA_BYTE))
                  .containsOnly(0));
      step(runtime, workspace, s -> {});
    }
  }

  @Test
  void aCallOfAnotherThreadLeavesTheCountersOfAStepAsTheyAre() throws InterruptedException {
    WorkspacePlan plan =
        WorkspacePlan.of(0, new WorkspaceRegion("counters", 64, WorkspaceRegion.State.ZEROED));
    Workspace workspace = Workspace.wrap(MemorySegment.ofArray(new long[256]), plan, 1);
    GroupRuntime<RecordingBackend.Metadata> runtime = GroupRuntime.open(backend, GROUP, CACHE);
    List<BifocalException> refusals = Collections.synchronizedList(new ArrayList<>());
    zero(workspace, "");
    backend.building(step -> step.workspace().region("counters").fill((byte) 7));
    try (Workspace.Step open = workspace.openStep()) {
      GroupStep<RecordingBackend.Metadata> step =
          runtime.step(new StepContext(launch, open, 0), batch);
      List<Runnable> calls =
          List.of(
              () -> step.forward(0, Q, view, OUT),
              () -> step.forwardUncached(0, Q, new KvInput.Dense(Q, Q), OUT));
      for (Runnable call : calls) {
        Thread.ofPlatform()
            .start(
                () -> {
                  try {
                    call.run();
                  } catch (BifocalException e) {
                    refusals.add(e);
                  }
                })
            .join();
      }
    }

    assertThat(refusals)
        .extracting(BifocalException::code)
        .containsExactly(ErrorCode.WRONG_THREAD, ErrorCode.WRONG_THREAD);
    backend.building(
        step ->
            assertThat(step.workspace().region("counters").toArray(ValueLayout.JAVA_BYTE))
                .containsOnly(7));
    step(runtime, workspace, s -> {});
  }

  private void zero(Workspace workspace, String prefix) {
    try (Workspace.Step step = workspace.openStep()) {
      step.region(prefix + "counters").fill((byte) 0);
    }
  }

  private void step(
      GroupRuntime<RecordingBackend.Metadata> runtime,
      Workspace workspace,
      Consumer<GroupStep<RecordingBackend.Metadata>> work) {
    try (Workspace.Step open = workspace.openStep()) {
      work.accept(runtime.step(new StepContext(launch, open, 0), batch));
    }
  }
}
