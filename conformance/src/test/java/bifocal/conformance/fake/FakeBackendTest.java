package bifocal.conformance.fake;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HostLaunchContext;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayout;
import bifocal.core.cache.KvScales;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

/** What the fakes promise to the tests that use them. */
class FakeBackendTest {
  private static final LayerGroup GROUP =
      LayerGroup.of(
          "all", AttentionLayerSpec.Dense.decoder(1, 1, 1, DType.FP32, AttentionMask.CAUSAL));

  private final CallLog log = new CallLog();
  private final FakeBackend fake = FakeBackend.of("FAKE", log, FeatureSet.NONE);

  @Test
  void callsAreKeptInOrder() {
    try (var builder = fake.createBuilder(GROUP, cache())) {
      builder.build(step(), GROUP, batch(1, 1));
    }
    assertThat(log.calls().map(call -> call.getClass().getSimpleName()))
        .containsExactly("BuilderCreated", "Built", "BuilderClosed");
  }

  @Test
  void scriptedCallFailsAndTheNextOneDoesNot() {
    FakeBackend failing = fake.withFailures(Failures.on(Call.Built.class, 2));
    try (var builder = failing.createBuilder(GROUP, cache())) {
      builder.build(step(), GROUP, batch(1));
      assertThatThrownBy(() -> builder.build(step(), GROUP, batch(1)))
          .isInstanceOfSatisfying(
              BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NATIVE_FAILED));
      builder.build(step(), GROUP, batch(1));
    }
  }

  @Test
  void graphReplaysWhatWasCapturedNotWhatWouldRunNow() {
    FakeBackend capturable = fake.withGraphSupport(GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE);
    try (var builder = capturable.createBuilder(GROUP, cache())) {
      FakeMetadata decode = builder.build(step(), GROUP, batch(1, 1));
      RecordingGraph graph =
          RecordingGraph.capture(
              log, decode, () -> log.add(new Call.Forwarded(fake.name(), decode)));
      log.clear();
      graph.replay(log, builder.build(step(), GROUP, batch(1, 1)));
      assertThat(graph.kernels()).containsExactly(BackendName.of("FAKE"));
      assertThat(log.of(Call.Forwarded.class))
          .containsExactly(new Call.Forwarded(fake.name(), decode));
    }
  }

  @Test
  void graphRefusesAnotherShapeAndBatchesThatMayNotBeCaptured() {
    FakeBackend capturable = fake.withGraphSupport(GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE);
    try (var builder = capturable.createBuilder(GROUP, cache())) {
      FakeMetadata decode = builder.build(step(), GROUP, batch(1, 1));
      FakeMetadata larger = builder.build(step(), GROUP, batch(1, 1, 1));
      FakeMetadata mixed = builder.build(step(), GROUP, batch(1, 7));
      RecordingGraph graph = RecordingGraph.capture(log, decode, () -> {});
      assertThatThrownBy(() -> graph.replay(log, larger))
          .isInstanceOfSatisfying(
              BifocalException.class,
              e -> assertThat(e.code()).isEqualTo(ErrorCode.GRAPH_KEY_MISMATCH));
      assertThatThrownBy(() -> graph.replay(log, mixed))
          .isInstanceOfSatisfying(
              BifocalException.class,
              e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_CAPTURABLE));
      assertThatThrownBy(() -> RecordingGraph.capture(log, mixed, () -> {}))
          .isInstanceOfSatisfying(
              BifocalException.class,
              e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_CAPTURABLE));
    }
  }

  private static StepContext step() {
    Workspace workspace = Workspace.wrap(MemorySegment.ofArray(new byte[0]), WorkspacePlan.NONE, 1);
    return new StepContext(new HostLaunchContext(AttentionObserver.NONE), workspace.openStep(), 0);
  }

  private static CommonAttentionMetadata batch(int... queryLens) {
    int[] starts = new int[queryLens.length + 1];
    for (int r = 0; r < queryLens.length; r++) {
      starts[r + 1] = starts[r] + queryLens[r];
    }
    MemorySegment memory = Arena.ofAuto().allocate(64);
    return CommonAttentionMetadata.builder(
            starts,
            queryLens,
            TensorView.ofHost(memory, DType.INT32, queryLens.length, 0),
            new SlotMapping(TensorView.ofHost(memory, DType.INT64, 0)))
        .build();
  }

  private static KvCacheSpec cache() {
    return new KvCacheSpec(new NoLayout(), KvCacheDtype.FLOAT32, 16, 1, 1, 1, KvScales.ONE);
  }

  private record NoLayout() implements KvLayout {
    @Override
    public String name() {
      return "NONE";
    }

    @Override
    public long blockBytes(KvCacheSpec spec) {
      return 1;
    }

    @Override
    public long valueOffset(KvCacheSpec spec) {
      return 0;
    }

    @Override
    public void write(
        KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] key, float[] value) {}

    @Override
    public void readKey(
        KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] key) {}

    @Override
    public void readValue(
        KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] value) {}
  }
}
