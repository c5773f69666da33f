package bifocal.composite;

import static bifocal.composite.TestBatch.lens;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.conformance.fake.Call;
import bifocal.conformance.fake.CallLog;
import bifocal.conformance.fake.Failures;
import bifocal.conformance.fake.FakeBackend;
import bifocal.conformance.fake.FakeMetadata;
import bifocal.conformance.fake.RecordingGraph;
import bifocal.core.backend.BackendName;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphKey;
import bifocal.core.graph.GraphSupport;
import bifocal.core.route.Child;
import bifocal.core.workspace.Workspace;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which batches may be captured, and what a captured graph may be replayed for. */
class GraphTest {
  private static final BackendName FAST = BackendName.of("FAST");

  private final CallLog log = new CallLog();
  private FakeBackend general =
      FakeBackend.of("GENERAL", log, SummingBackend.PLAIN).withGraphSupport(GraphSupport.ALWAYS);
  private FakeBackend fast =
      FakeBackend.of("FAST", log, SummingBackend.PLAIN).withGraphSupport(GraphSupport.ALWAYS);

  private TestHost<CompositeMetadata<FakeMetadata, FakeMetadata>> host(FakePolicy policy) {
    return new TestHost<>(CompositeBackends.createCompositeBackendOrThrow(general, fast, policy));
  }

  private static FakePolicy capturingPolicy(GraphSupport support) {
    return FakePolicy.imagesToA().withGraphSupport(support);
  }

  private static CommonAttentionMetadata decodes(int requests) {
    int[] queryLens = new int[requests];
    int[] seqLens = new int[requests];
    java.util.Arrays.fill(queryLens, 1);
    java.util.Arrays.fill(seqLens, 7);
    return TestBatch.of(queryLens, seqLens).build();
  }

  private RecordingGraph capture(
      TestHost<CompositeMetadata<FakeMetadata, FakeMetadata>> host, CommonAttentionMetadata batch) {
    try (Workspace.Step step = host.openStep()) {
      var metadata = host.build(step, batch);
      return RecordingGraph.capture(log, metadata, () -> host.forward(metadata, batch));
    }
  }

  private GraphKey key(
      TestHost<CompositeMetadata<FakeMetadata, FakeMetadata>> host, CommonAttentionMetadata batch) {
    try (Workspace.Step step = host.openStep()) {
      return host.build(step, batch).graphKey();
    }
  }

  /** C08, first order: an image batch before the capture does not change what is captured. */
  @Test
  void aCaptureAfterAnImageBatchRecordsTheFastChild() {
    var host = host(capturingPolicy(GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE));
    host.run(TestBatch.image(8, 8, 2, 5));

    RecordingGraph graph = capture(host, decodes(3));

    assertThat(graph.kernels()).containsExactly(FAST);
    assertThat(graph.key().route()).isEqualTo("B:FAST");
  }

  /** C08, other order: an image batch after the capture does not change what is replayed. */
  @Test
  void aReplayAfterAnImageBatchLaunchesTheFastChild() {
    var host = host(capturingPolicy(GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE));
    RecordingGraph graph = capture(host, decodes(3));
    host.run(TestBatch.image(8, 8, 2, 5));
    log.clear();

    try (Workspace.Step step = host.openStep()) {
      graph.replay(log, host.build(step, decodes(3)));
    }

    assertThat(log.of(Call.Forwarded.class).map(Call::backend)).containsExactly(FAST);
  }

  /** C08, with a build that fails in between. */
  @Test
  void aFailedBuildLeavesTheNextCaptureAlone() {
    general = general.withFailures(Failures.on(Call.Built.class, 1));
    var host = host(capturingPolicy(GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE));
    CommonAttentionMetadata image = TestBatch.image(8, 8, 2, 5);
    assertThatThrownBy(() -> host.run(image)).isInstanceOf(BifocalException.class);

    assertThat(capture(host, decodes(3)).kernels()).containsExactly(FAST);
  }

  @Test
  void aGraphIsNotReplayedForABatchOnTheOtherChild() {
    var host = host(capturingPolicy(GraphSupport.ALWAYS));
    RecordingGraph graph = capture(host, decodes(3));

    refusedReplay(host, graph, TestBatch.image(8, 8, 2, 5), ErrorCode.NOT_CAPTURABLE);
  }

  @Test
  void aGraphIsNotReplayedForAnotherNumberOfRequests() {
    var host = host(capturingPolicy(GraphSupport.ALWAYS));
    RecordingGraph graph = capture(host, decodes(3));

    refusedReplay(host, graph, decodes(4), ErrorCode.GRAPH_KEY_MISMATCH);
  }

  private void refusedReplay(
      TestHost<CompositeMetadata<FakeMetadata, FakeMetadata>> host,
      RecordingGraph graph,
      CommonAttentionMetadata batch,
      ErrorCode code) {
    log.clear();
    try (Workspace.Step step = host.openStep()) {
      var metadata = host.build(step, batch);

      assertThatThrownBy(() -> graph.replay(log, metadata))
          .isInstanceOfSatisfying(
              BifocalException.class, e -> assertThat(e.code()).isEqualTo(code));
      assertThat(log.of(Call.Forwarded.class)).isEmpty();
    }
  }

  @ParameterizedTest
  @CsvSource({
    "UNIFORM_SINGLE_TOKEN_DECODE, ALWAYS, UNIFORM_BATCH, UNIFORM_SINGLE_TOKEN_DECODE",
    "ALWAYS, UNIFORM_SINGLE_TOKEN_DECODE, UNIFORM_BATCH, UNIFORM_SINGLE_TOKEN_DECODE",
    "ALWAYS, ALWAYS, UNIFORM_BATCH, UNIFORM_BATCH",
    "ALWAYS, NEVER, ALWAYS, NEVER",
    "ALWAYS, ALWAYS, ALWAYS, ALWAYS"
  })
  void graphSupportIsTheWeakestOfChildrenAndPolicy(
      GraphSupport ofA, GraphSupport ofB, GraphSupport ofPolicy, GraphSupport weakest) {
    var composite =
        CompositeBackends.createCompositeBackendOrThrow(
            general.withGraphSupport(ofA), fast.withGraphSupport(ofB), capturingPolicy(ofPolicy));

    assertThat(composite.graphSupport(TestHost.GROUP)).isEqualTo(weakest);
  }

  /** C09: one request of seven queries among thirty decodes. */
  @Test
  void aMixedBatchRunsUncapturedWhereOneChildTakesOnlyDecodes() {
    general = general.withGraphSupport(GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE);
    int[] queryLens = new int[31];
    int[] seqLens = new int[31];
    java.util.Arrays.fill(queryLens, 1);
    java.util.Arrays.fill(seqLens, 9);
    queryLens[0] = 7;

    var host = host(capturingPolicy(GraphSupport.UNIFORM_BATCH));

    assertThat(key(host, TestBatch.of(queryLens, seqLens).build()).captureSafe()).isFalse();
    assertThat(key(host, decodes(31)).captureSafe()).isTrue();
  }

  /** C09: a child that does not state its own level may not be captured. */
  @Test
  void aChildThatStatesNoLevelCountsAsNever() {
    SummingBackend silent = new SummingBackend("SILENT", new SummingBackend.Journal());

    assertThat(
            CompositeBackends.createCompositeBackendOrThrow(
                    general, silent, capturingPolicy(GraphSupport.ALWAYS))
                .graphSupport(TestHost.GROUP))
        .isEqualTo(GraphSupport.NEVER);
  }

  @Test
  void verificationsOfEquallyManyTokensAreAUniformBatch() {
    var host = host(capturingPolicy(GraphSupport.UNIFORM_BATCH));

    assertThat(key(host, TestBatch.of(lens(4, 4, 4), 9, 20, 7).build()).captureSafe()).isTrue();
    assertThat(key(host, TestBatch.of(lens(4, 3, 4), 9, 20, 7).build()).captureSafe()).isFalse();
  }

  @Test
  void onlyTheChildThatThePolicyNamesIsCaptured() {
    var onA = host(FakePolicy.always(Child.A).withGraphSupport(GraphSupport.ALWAYS));
    var onNamedA =
        host(FakePolicy.always(Child.A).withGraphSupport(GraphSupport.ALWAYS).capturing(Child.A));

    assertThat(key(onA, decodes(2)).captureSafe()).isFalse();
    assertThat(key(onNamedA, decodes(2))).isEqualTo(new GraphKey("A:GENERAL", 2, 2, true));
  }

  @Test
  void dividedAndEmptyBatchesAreNeverCaptured() {
    FakePolicy dividing =
        FakePolicy.byRequest(r -> r == 0 ? Child.A : Child.B).withGraphSupport(GraphSupport.ALWAYS);
    var host = host(dividing);

    assertThat(key(host, decodes(2)).captureSafe()).isFalse();
    assertThat(key(host, TestBatch.of(lens(0), 5).build()).captureSafe()).isFalse();
  }
}
