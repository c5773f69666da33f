package bifocal.composite;

import static bifocal.composite.TestBatch.lens;
import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.bench.Calibration;
import bifocal.core.bench.ChildTime;
import bifocal.core.bench.ChildTime.Phase;
import bifocal.core.bench.Provenance;
import bifocal.core.graph.GraphKey;
import bifocal.core.graph.GraphSupport;
import bifocal.core.tensor.DType;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.core.workspace.WorkspaceRegion;
import bifocal.routing.MMPrefixAttentionRouting;
import bifocal.routing.MeasuredRouting;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A composite whose policy lets measured times choose between its children. */
class MeasuredTest {
  private static final BackendName GENERAL = BackendName.of("GENERAL");
  private static final BackendName FAST = BackendName.of("FAST");
  private static final CommonAttentionMetadata TEXT = TestBatch.text(8, 8);
  private static final CommonAttentionMetadata MIXED =
      TestBatch.of(lens(8, 8), 8, 8).images(new int[][] {{2, 5}, {}}).build();

  /** One child, mocked, and what it was asked. */
  private record Child<M extends AttentionMetadata>(
      AttentionBackend<M> backend, AttentionMetadataBuilder<M> builder, AttentionImpl<M> impl) {

    @SuppressWarnings("unchecked")
    static Child<AttentionMetadata> mocked(BackendName name) {
      AttentionBackend<AttentionMetadata> backend = mock(AttentionBackend.class);
      AttentionMetadataBuilder<AttentionMetadata> builder = mock(AttentionMetadataBuilder.class);
      AttentionImpl<AttentionMetadata> impl = mock(AttentionImpl.class);
      AttentionMetadata metadata = mock(AttentionMetadata.class);
      Capabilities capabilities = Capabilities.of(SummingBackend.PLAIN);
      when(backend.name()).thenReturn(name);
      when(backend.capabilities()).thenReturn(capabilities);
      when(backend.capabilities(any())).thenReturn(capabilities);
      when(backend.graphSupport(any())).thenReturn(GraphSupport.NEVER);
      when(backend.workspace(any(), any(), any()))
          .thenReturn(
              WorkspacePlan.of(
                  0, new WorkspaceRegion("scratch", 4096, WorkspaceRegion.State.SCRATCH)));
      when(backend.createBuilder(any(), any())).thenReturn(builder);
      when(backend.createImpl(any(), any(), any())).thenReturn(impl);
      when(builder.build(any(), any(), any())).thenReturn(metadata);
      when(metadata.graphKey()).thenReturn(GraphKey.EAGER);
      return new Child<>(backend, builder, impl);
    }
  }

  private static MeasuredRouting measured(double general, double fast) {
    Seq<ChildTime> times = Vector.empty();
    for (Phase phase : Phase.values()) {
      times = times.append(time(GENERAL, phase, general)).append(time(FAST, phase, fast));
    }
    return new MeasuredRouting(
        new MMPrefixAttentionRouting(),
        new Calibration(new Provenance("m", "d", "k", "j", "v", "c", "t", "x"), times),
        GENERAL,
        FAST);
  }

  private static ChildTime time(BackendName child, Phase phase, double nanos) {
    return new ChildTime(child, DType.FP32, TestHost.HEAD_SIZE, phase, 1, 8, nanos);
  }

  private static void run(
      Child<AttentionMetadata> general,
      Child<AttentionMetadata> fast,
      MeasuredRouting policy,
      CommonAttentionMetadata batch) {
    try (var host =
        new TestHost<>(
            CompositeBackends.createCompositeBackendOrThrow(
                general.backend(), fast.backend(), policy))) {
      host.run(batch);
    }
  }

  @Test
  void textRunsOnTheChildThatWasMeasuredToBeFaster() {
    Child<AttentionMetadata> general = Child.mocked(GENERAL);
    Child<AttentionMetadata> fast = Child.mocked(FAST);

    run(general, fast, measured(1, 2), TEXT);

    verify(general.builder()).build(any(), any(), any());
    verify(general.impl()).forward(any(), any(), any(), any(), any());
    verify(fast.builder(), never()).build(any(), any(), any());
    verify(fast.impl(), never()).forward(any(), any(), any(), any(), any());
  }

  @Test
  void imagesRunOnTheGeneralChildHoweverSlowItIs() {
    Child<AttentionMetadata> general = Child.mocked(GENERAL);
    Child<AttentionMetadata> fast = Child.mocked(FAST);

    run(general, fast, measured(1000, 1), MIXED);

    verify(general.impl()).forward(any(), any(), any(), any(), any());
    verify(fast.impl()).forward(any(), any(), any(), any(), any());
  }

  @Test
  void aBatchIsNotDividedWhereTheGeneralChildIsFasterForAll() {
    Child<AttentionMetadata> general = Child.mocked(GENERAL);
    Child<AttentionMetadata> fast = Child.mocked(FAST);

    run(general, fast, measured(1, 2), MIXED);

    verify(general.impl()).forward(any(), any(), any(), any(), any());
    verify(fast.impl(), never()).forward(any(), any(), any(), any(), any());
  }

  @ParameterizedTest
  @ValueSource(doubles = {0.5, 1, 2})
  void theOutputIsTheSameWhateverWasMeasured(double general) {
    for (UnaryOperator<MMPrefixAttentionRouting> kind :
        Vector.<UnaryOperator<MMPrefixAttentionRouting>>of(
            UnaryOperator.identity(), MMPrefixAttentionRouting::wholeBatch)) {
      SummingBackend.Journal journal = new SummingBackend.Journal();
      MeasuredRouting policy =
          new MeasuredRouting(
              kind.apply(new MMPrefixAttentionRouting()),
              new Calibration(
                  new Provenance("m", "d", "k", "j", "v", "c", "t", "x"),
                  Vector.of(time(GENERAL, Phase.PREFILL, general), time(FAST, Phase.PREFILL, 1))),
              GENERAL,
              FAST);
      try (var host =
          new TestHost<>(
              CompositeBackends.createCompositeBackendOrThrow(
                  new SummingBackend("GENERAL", journal),
                  new SummingBackend("FAST", journal),
                  policy))) {
        assertThat(host.run(MIXED).values())
            .isEqualTo(TestHost.alone(TestHost.GROUP, MIXED).values());
        assertThat(host.run(TEXT).values())
            .isEqualTo(TestHost.alone(TestHost.GROUP, TEXT).values());
      }
    }
  }

  @Test
  void aSplitThatMeasurementsMakeIsOneThatThePolicyAnnounced() {
    try (var host =
            new TestHost<>(
                CompositeBackends.createCompositeBackendOrThrow(
                    new SummingBackend("GENERAL", new SummingBackend.Journal()),
                    new SummingBackend("FAST", new SummingBackend.Journal()),
                    measured(2, 1)));
        Workspace.Step step = host.openStep()) {
      assertThat(host.build(step, MIXED)).isInstanceOf(CompositeMetadata.Split.class);
    }
  }
}
