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
import bifocal.core.route.RoutingPolicy;
import bifocal.core.workspace.Workspace;
import bifocal.routing.Lowering;
import bifocal.routing.MMPrefixAttentionRouting;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

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

  /** What may have run on the same objects before a capture, or between it and a replay. */
  private enum Between {
    IMAGES_ON_THE_GENERAL_CHILD,
    A_BATCH_DIVIDED,
    IMAGES_LOWERED,
    A_FORWARD_THAT_FAILED,
    NO_REQUEST,
    PADDING
  }

  /** C08, neighbours: whatever ran before, decodes are recorded on the fast child. */
  @ParameterizedTest
  @EnumSource(Between.class)
  void whateverRanBeforeDecodesAreRecordedOnTheFastChild(Between between) {
    var host = routed(between);
    run(host, between);
    log.clear();

    RecordingGraph graph = capture(host, decodes(3));

    assertThat(graph.kernels()).containsExactly(FAST);
    assertThat(graph.key()).isEqualTo(new GraphKey("B:FAST", 3, 3, true));
  }

  /** C08, neighbours: and replayed there, whatever ran in between. */
  @ParameterizedTest
  @EnumSource(Between.class)
  void whateverRanInBetweenDecodesAreReplayedOnTheFastChild(Between between) {
    var host = routed(between);
    RecordingGraph graph = capture(host, decodes(3));
    run(host, between);
    log.clear();

    try (Workspace.Step step = host.openStep()) {
      graph.replay(log, host.build(step, decodes(3)));
    }

    assertThat(log.of(Call.Forwarded.class).map(Call::backend)).containsExactly(FAST);
  }

  /** C08, neighbour: two batches alive at once, run in the other order than they were built in. */
  @Test
  void aBatchGoesWhereItWasBuiltForWhateverWasBuiltAfterIt() {
    var host = routed(Between.IMAGES_ON_THE_GENERAL_CHILD);
    CommonAttentionMetadata image = TestBatch.image(8, 8, 2, 5);
    try (Workspace.Step first = host.openStep();
        Workspace.Step second = host.openStep()) {
      var ofImage = host.build(first, image);
      var ofDecodes = host.build(second, decodes(3));

      RecordingGraph graph =
          RecordingGraph.capture(log, ofDecodes, () -> host.forward(ofDecodes, decodes(3)));
      log.clear();
      host.forward(ofImage, image);

      assertThat(graph.kernels()).containsExactly(FAST);
      assertThat(log.of(Call.Forwarded.class).map(Call::backend))
          .containsExactly(BackendName.of("GENERAL"));
    }
  }

  private TestHost<CompositeMetadata<FakeMetadata, FakeMetadata>> routed(Between between) {
    MMPrefixAttentionRouting routing = new MMPrefixAttentionRouting();
    general =
        between == Between.A_FORWARD_THAT_FAILED
            ? general.withFailures(Failures.on(Call.Forwarded.class, 1))
            : general;
    RoutingPolicy policy =
        switch (between) {
          case A_BATCH_DIVIDED -> routing;
          case IMAGES_LOWERED -> routing.withLowering(Lowering.LEFT_WINDOW);
          case IMAGES_ON_THE_GENERAL_CHILD, A_FORWARD_THAT_FAILED, NO_REQUEST, PADDING ->
              routing.wholeBatch();
        };
    return new TestHost<>(CompositeBackends.createCompositeBackendOrThrow(general, fast, policy));
  }

  private void run(TestHost<CompositeMetadata<FakeMetadata, FakeMetadata>> host, Between between) {
    CommonAttentionMetadata image = TestBatch.image(8, 8, 2, 5);
    switch (between) {
      case IMAGES_ON_THE_GENERAL_CHILD, IMAGES_LOWERED -> host.run(image);
      case A_BATCH_DIVIDED ->
          host.run(TestBatch.of(lens(8, 1), 8, 5).images(lens(2, 5), lens()).build());
      case A_FORWARD_THAT_FAILED ->
          assertThatThrownBy(() -> host.run(image)).isInstanceOf(BifocalException.class);
      case NO_REQUEST -> host.run(TestBatch.of(lens(), new int[0]).build());
      case PADDING -> host.run(TestBatch.of(lens(1, 1, 0), 7, 7, 8).live(2).build());
    }
  }

  /** C09, neighbours: the weakest of all, however deep, for either side of a composite. */
  @ParameterizedTest
  @CsvSource({
    "ALWAYS, ALWAYS, ALWAYS, ALWAYS",
    "ALWAYS, UNIFORM_SINGLE_TOKEN_DECODE, ALWAYS, UNIFORM_SINGLE_TOKEN_DECODE",
    "UNIFORM_BATCH, ALWAYS, ALWAYS, UNIFORM_BATCH",
    "ALWAYS, ALWAYS, NEVER, NEVER"
  })
  void graphSupportIsTheWeakestAtAnyDepth(
      GraphSupport one, GraphSupport two, GraphSupport three, GraphSupport weakest) {
    FakePolicy policy = capturingPolicy(GraphSupport.ALWAYS);
    var inner =
        CompositeBackends.createCompositeBackendOrThrow(
            general.withGraphSupport(one), fast.withGraphSupport(two), policy);
    FakeBackend last = FakeBackend.of("LAST", log, SummingBackend.PLAIN).withGraphSupport(three);

    assertThat(
            CompositeBackends.createCompositeBackendOrThrow(inner, last, policy)
                .graphSupport(TestHost.GROUP))
        .isEqualTo(weakest);
    assertThat(
            CompositeBackends.createCompositeBackendOrThrow(last, inner, policy)
                .graphSupport(TestHost.GROUP))
        .isEqualTo(weakest);
  }

  /** C09, neighbours: a composite does not hand on a level that a child only inherits. */
  @Test
  void aChildThatInheritsALevelForOtherKernelsIsNeverCaptured() {
    SummingBackend derived =
        new SummingBackend("DERIVED", new SummingBackend.Journal()) {
          @Override
          boolean indirect() {
            return false;
          }
        }.withGraphSupport(GraphSupport.ALWAYS);
    FakePolicy policy = capturingPolicy(GraphSupport.ALWAYS);

    for (var composite :
        List.of(
            CompositeBackends.createCompositeBackendOrThrow(general, derived, policy),
            CompositeBackends.createCompositeBackendOrThrow(derived, fast, policy))) {
      assertThat(composite.graphSupport(TestHost.GROUP)).isEqualTo(GraphSupport.NEVER);
    }
  }

  /** C09, neighbours: mixed batches of every make, on every level. */
  @ParameterizedTest
  @CsvSource({
    "NEVER, false, false, false",
    "UNIFORM_SINGLE_TOKEN_DECODE, true, false, false",
    "UNIFORM_BATCH, true, true, false",
    "ALWAYS, true, true, true"
  })
  void aBatchIsCapturedAsFarAsTheWeakestLevelGoes(
      GraphSupport level, boolean decodes, boolean verifications, boolean mixed) {
    general = general.withGraphSupport(level);
    var host = host(capturingPolicy(GraphSupport.ALWAYS));

    assertThat(key(host, decodes(3)).captureSafe()).isEqualTo(decodes);
    assertThat(key(host, TestBatch.of(lens(4, 4), 9, 20).build()).captureSafe())
        .isEqualTo(verifications);
    assertThat(key(host, TestBatch.of(lens(7, 1, 1), 9, 9, 9).build()).captureSafe())
        .isEqualTo(mixed);
  }
}
