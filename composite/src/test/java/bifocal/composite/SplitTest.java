package bifocal.composite;

import static bifocal.composite.TestBatch.lens;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.composite.SummingBackend.Journal;
import bifocal.composite.SummingBackend.Metadata;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.Feature;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.route.Child;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Random;
import java.util.function.IntFunction;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** One batch divided between two children over one cache. */
class SplitTest {
  private final Journal journal = new Journal();
  private final SummingBackend general = new SummingBackend("GENERAL", journal);
  private final SummingBackend fast = new SummingBackend("FAST", journal);

  private TestHost<CompositeMetadata<Metadata, Metadata>> host(IntFunction<Child> choice) {
    var host =
        new TestHost<>(
            CompositeBackends.createCompositeBackendOrThrow(
                general, fast, FakePolicy.byRequest(choice)));
    journal.events.clear();
    return host;
  }

  private static Child everySecondToB(int request) {
    return request % 2 == 1 ? Child.B : Child.A;
  }

  @Test
  void eachChildBuildsAndRunsItsOwnRequestsAndTheGeneralOneWrites() {
    var batch = TestBatch.of(lens(3, 1, 2, 1), 7, 9, 2, 5).build();

    host(SplitTest::everySecondToB).run(batch);

    assertThat(journal.events)
        .containsExactly(
            "GENERAL builds", "FAST builds", "GENERAL writes", "GENERAL forwards", "FAST forwards");
    CommonAttentionMetadata ofGeneral = journal.built.get(0).batch();
    CommonAttentionMetadata ofFast = journal.built.get(1).batch();
    assertThat(ofGeneral.live()).isEqualTo(2);
    assertThat(ofGeneral.queryLen(0)).isEqualTo(3);
    assertThat(ofGeneral.seqLen(1)).isEqualTo(2);
    assertThat(ofFast.queryLen(0)).isEqualTo(1);
    assertThat(ofFast.seqLen(0)).isEqualTo(9);
    assertThat(ofFast.seqLen(1)).isEqualTo(5);
  }

  @RepeatedTest(300)
  void theDividedRunEqualsTheWholeOne(RepetitionInfo repetition) {
    long seed = 7_000 + repetition.getCurrentRepetition();
    Random random = new Random(seed);
    if (random.nextBoolean()) {
      general.withMoreFeatures(Feature.INDIRECT_REQUESTS);
    }
    if (random.nextBoolean()) {
      fast.withMoreFeatures(Feature.INDIRECT_REQUESTS);
    }
    CommonAttentionMetadata batch = RandomBatches.of(random);
    boolean[] toB = new boolean[batch.live()];
    for (int r = 0; r < toB.length; r++) {
      toB[r] = random.nextBoolean();
    }

    var whole = TestHost.alone(TestHost.GROUP, batch);
    var divided = host(r -> toB[r] ? Child.B : Child.A).run(batch);

    assertThat(divided.values()).as("seed %d", seed).isEqualTo(whole.values());
    assertThat(divided.lseValues()).as("seed %d", seed).isEqualTo(whole.lseValues());
  }

  @Test
  void severalDividedBatchesAreAliveAtOnce() {
    var host = host(SplitTest::everySecondToB);
    var one = TestBatch.of(lens(3, 1, 2, 1), 7, 9, 2, 5).build();
    var two = TestBatch.of(lens(1, 4, 1), 30, 4, 21).build();
    try (Workspace.Step first = host.openStep();
        Workspace.Step second = host.openStep()) {
      var metadataOne = host.build(first, one);
      var metadataTwo = host.build(second, two);

      for (int layer = 0; layer < 2; layer++) {
        assertThat(host.forward(metadataOne, one).values())
            .isEqualTo(TestHost.alone(TestHost.GROUP, one).values());
        assertThat(host.forward(metadataTwo, two).values())
            .isEqualTo(TestHost.alone(TestHost.GROUP, two).values());
      }
    }
  }

  @ParameterizedTest
  @EnumSource(Child.class)
  void theLargestBatchFitsTheWorkspaceThatWasPlannedForIt(Child copied) {
    (copied == Child.A ? fast : general).withMoreFeatures(Feature.INDIRECT_REQUESTS);
    int requests = TestHost.LIMITS.maxRequests();
    int[] queryLens = new int[requests];
    int[] seqLens = new int[requests];
    Arrays.fill(queryLens, TestHost.LIMITS.maxQueryTokens() / requests);
    Arrays.fill(seqLens, TestHost.LIMITS.maxSeqLen());
    var batch = TestBatch.of(queryLens, seqLens).build();
    var host = host(r -> r == requests / 2 ? other(copied) : copied);
    try (Workspace.Step step = host.openStep()) {
      assertThat(host.build(step, batch)).isInstanceOf(CompositeMetadata.Split.class);
      assertThat(host.launch.copies).hasSize(requests - 1);
    }
  }

  private static Child other(Child child) {
    return switch (child) {
      case A -> Child.B;
      case B -> Child.A;
    };
  }

  @Test
  void requestsWithoutQueriesAreLeftOutOfAPart() {
    var batch = TestBatch.of(lens(0, 1, 2, 0), 7, 9, 2, 5).build();

    host(r -> r < 2 ? Child.A : Child.B).run(batch);

    assertThat(journal.built.get(0).batch().live()).isEqualTo(1);
    assertThat(journal.built.get(0).batch().seqLen(0)).isEqualTo(9);
    assertThat(journal.built.get(1).batch().live()).isEqualTo(1);
    assertThat(journal.built.get(1).batch().seqLen(0)).isEqualTo(2);
  }

  @Test
  void requestsThatLieTogetherAreNotCopied() {
    var host = host(r -> r < 2 ? Child.B : Child.A);

    host.run(TestBatch.of(lens(1, 1, 5, 4), 6, 3, 5, 9).build());

    assertThat(host.launch.copies).isEmpty();
  }

  @Test
  void childrenThatReadAnywhereNeedNoCopyAndNoWorkspace() {
    general.withMoreFeatures(Feature.INDIRECT_REQUESTS);
    fast.withMoreFeatures(Feature.INDIRECT_REQUESTS);
    var host = host(SplitTest::everySecondToB);

    host.run(TestBatch.of(lens(3, 1, 2, 1), 7, 9, 2, 5).build());

    assertThat(host.launch.copies).isEmpty();
    assertThat(host.workspace.plan().totalBytes(4)).isZero();
  }

  @Test
  void keysAndValuesAreNeverCopied() {
    var host = host(SplitTest::everySecondToB);

    host.run(TestBatch.of(lens(3, 1, 2, 1), 7, 9, 2, 5).build());

    assertThat(host.launch.copies)
        .isNotEmpty()
        .allSatisfy(
            copy -> {
              assertThat(copy.from().asOverlappingSlice(host.cache.memory())).isEmpty();
              assertThat(copy.to().asOverlappingSlice(host.cache.memory())).isEmpty();
            });
  }

  @Test
  void rowsOfQueriesInsideAWiderTensorAreFound() {
    var batch = TestBatch.of(lens(3, 1, 2, 1), 7, 9, 2, 5).build();
    var host = host(SplitTest::everySecondToB);
    TensorView dense = TestHost.queries(batch);
    try (Workspace.Step step = host.openStep()) {
      var result = host.forward(host.build(step, batch), batch, insideWiderRows(dense));

      assertThat(result.values()).isEqualTo(TestHost.alone(TestHost.GROUP, batch).values());
    }
  }

  /** The same queries as the middle of rows three times as wide. */
  private static TensorView insideWiderRows(TensorView dense) {
    int rows = (int) dense.size(0);
    int width = TestHost.HEADS * TestHost.HEAD_SIZE;
    MemorySegment memory = TestHost.memory(4L * rows * 3 * width);
    memory.fill((byte) 0xFF);
    for (int row = 0; row < rows; row++) {
      MemorySegment.copy(
          dense.data(), 4L * row * width, memory, 4L * (3 * row + 1) * width, 4L * width);
    }
    return TensorView.of(
        memory.asSlice(4L * width),
        DType.FP32,
        dense.device(),
        new long[] {rows, TestHost.HEADS, TestHost.HEAD_SIZE},
        new long[] {3L * width, TestHost.HEAD_SIZE, 1});
  }

  @Test
  void queriesThatCannotBeCopiedRowByRowAreRefused() {
    var batch = TestBatch.of(lens(3, 1, 2, 1), 7, 9, 2, 5).build();
    var host = host(SplitTest::everySecondToB);
    TensorView dense = TestHost.queries(batch);
    TensorView headsApart =
        TensorView.of(
            dense.data(),
            DType.FP32,
            dense.device(),
            new long[] {7, TestHost.HEADS, TestHost.HEAD_SIZE},
            new long[] {TestHost.HEADS * TestHost.HEAD_SIZE, 1, TestHost.HEADS});
    try (Workspace.Step step = host.openStep()) {
      var metadata = host.build(step, batch);

      assertThatThrownBy(() -> host.forward(metadata, batch, headsApart))
          .isInstanceOfSatisfying(
              BifocalException.class,
              e -> assertThat(e.code()).isEqualTo(ErrorCode.SHAPE_MISMATCH));
    }
  }

  @Test
  void tooFewRowsAreRefusedBeforeAnythingIsCopied() {
    var batch = TestBatch.of(lens(3, 1, 2, 1), 7, 9, 2, 5).build();
    var host = host(SplitTest::everySecondToB);
    try (Workspace.Step step = host.openStep()) {
      var metadata = host.build(step, batch);
      host.launch.copies.clear();
      TensorView q = TestHost.queries(batch);
      var result = TestHost.Result.poisoned(batch);
      AttentionOutput tooShort = AttentionOutput.of(result.out().rows(0, 5));

      assertThatThrownBy(() -> host.impl.forward(host.launch, q, host.cache, metadata, tooShort))
          .isInstanceOfSatisfying(
              BifocalException.class,
              e -> assertThat(e.code()).isEqualTo(ErrorCode.SHAPE_MISMATCH));
      assertThat(host.launch.copies).isEmpty();
    }
  }

  @Test
  void aPartWithoutQueriesIsLeftOut() {
    var host = host(SplitTest::everySecondToB);

    host.run(TestBatch.of(lens(3, 0, 2), 7, 9, 2).build());

    assertThat(journal.events)
        .containsExactly("GENERAL builds", "GENERAL writes", "GENERAL forwards");
  }

  @Test
  void rowsThatNoRequestOwnsStayAsTheyWere() {
    var batch = TestBatch.of(lens(2, 1, 1, 3), 4, 3, 1, 3).live(3).build();
    var host = host(SplitTest::everySecondToB);
    try (Workspace.Step step = host.openStep()) {
      var metadata = host.build(step, batch);
      var padded = TestBatch.of(lens(2, 1, 1, 3), 4, 3, 1, 3).build();

      var result = host.forward(metadata, padded);

      for (int row = 4; row < 7; row++) {
        assertThat(result.out().data().getAtIndex(ValueLayout.JAVA_FLOAT, 8L * row))
            .isEqualTo(TestHost.POISON);
      }
    }
  }

  @Test
  void eitherOrderOfTheRequestsGivesTheSameRows() {
    // Two verifications of four tokens around a long chunk; the fast child takes only short ones.
    var arrived = TestBatch.of(lens(4, 40, 4), 20, 60, 9).build();
    var sorted = TestBatch.of(lens(4, 4, 40), 20, 9, 60).build();
    general.withDecodeThreshold(4);
    fast.withDecodeThreshold(1);
    var host =
        new TestHost<>(
            CompositeBackends.createCompositeBackendOrThrow(
                general,
                fast,
                FakePolicy.of(
                    (group, batch) ->
                        FakePolicy.split(batch, r -> batch.queryLen(r) <= 4 ? Child.B : Child.A))));

    assertThat(host.builder.decodeThreshold()).contains(1);
    assertThat(host.run(arrived).values())
        .isEqualTo(TestHost.alone(TestHost.GROUP, arrived).values());
    assertThat(host.run(sorted).values())
        .isEqualTo(TestHost.alone(TestHost.GROUP, sorted).values());
  }

  @Test
  void thePreferredOrderPutsEachChildsRequestsTogether() {
    var batch = TestBatch.of(lens(3, 1, 2, 1, 5), 7, 9, 2, 5, 5).build();
    var composite =
        (CompositeBackend<Metadata, Metadata>)
            CompositeBackends.createCompositeBackendOrThrow(
                general, fast, FakePolicy.byRequest(SplitTest::everySecondToB));

    assertThat(composite.preferredOrder(TestHost.GROUP, batch)).containsExactly(1, 3, 0, 2, 4);
  }
}
