package bifocal.cuda.driver;

import static bifocal.cuda.fake.Refusals.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.SlotMapping;
import bifocal.core.engine.GraphCapture.CapturedGraph;
import bifocal.core.engine.GraphRunner;
import bifocal.core.engine.GraphRunner.Run;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphKey;
import bifocal.core.graph.GraphSupport;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.fake.FakeCuda;
import bifocal.cuda.fake.FakeCuda.Launch;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What a stream recorded runs again, for the key it was recorded under and no other. */
final class CudaGraphCaptureTest {
  private static final GraphKey FOUR = new GraphKey("causal", 4, 4, true);
  private static final GraphKey EIGHT = new GraphKey("causal", 8, 8, true);

  private final FakeCuda fake = FakeCuda.resetOrSkip();
  private final CudaContext context = CudaContext.primary(fake.driver(), 0);
  private final CudaStream stream = CudaStream.create(context);
  private final CudaLaunchContext launch = new CudaLaunchContext(stream, AttentionObserver.NONE);
  private final CudaLibrary library =
      CudaLibrary.load(context, "attention", FakeCuda.image(90, FakeCuda.kernel("attend", 4)));
  private final Arena arena = Arena.ofConfined();
  private final PreparedLaunch attend =
      library.kernel("attend").prepare(arena, LaunchShape.of(32, 0));
  private final CudaGraphCapture capture = new CudaGraphCapture();

  @AfterEach
  void everythingIsClosed() {
    arena.close();
    library.close();
    stream.close();
    context.close();
    assertThat(fake.live().toJavaMap()).isEmpty();
  }

  private void attend(int number) {
    attend.setInt(0, number);
    attend.launch(stream, 1, 1, 1);
  }

  private static CommonAttentionMetadata decodes(int requests) {
    int[] ones = new int[requests];
    Arrays.fill(ones, 1);
    return CommonAttentionMetadata.builder(
            IntStream.rangeClosed(0, requests).toArray(),
            ones,
            TensorView.ofHost(MemorySegment.ofArray(new int[requests]), DType.INT32, requests, 1),
            new SlotMapping(
                TensorView.ofHost(
                    MemorySegment.ofArray(new long[requests]), DType.INT64, requests)))
        .build();
  }

  @Test
  void launchesAreRecordedAndRunAtEachReplay() {
    try (CapturedGraph graph =
        capture.capture(
            launch,
            () -> {
              attend(1);
              attend(2);
            })) {
      assertThat(fake.launches()).isEmpty();
      attend(99); // what is set later does not reach into the graph

      graph.replay(launch);
      graph.replay(launch);

      assertThat(fake.launches().map(seen -> seen.parameters().getInt(0)))
          .containsExactly(99, 1, 2, 1, 2);
      assertThat(fake.launches().map(Launch::replayed))
          .containsExactly(false, true, true, true, true);
    }
  }

  @Test
  void aGraphRunnerReplaysAKeyOnDeviceAndRefusesAnother() {
    try (GraphRunner runner = new GraphRunner(capture, GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE)) {
      runner.capture(launch, decodes(4), FOUR, () -> attend(4));

      assertThat(runner.run(launch, decodes(4), FOUR, () -> attend(-4))).isEqualTo(Run.REPLAYED);
      assertThat(runner.run(launch, decodes(8), EIGHT, () -> attend(8))).isEqualTo(Run.EAGER);
      assertThatThrownBy(() -> runner.replay(launch, EIGHT))
          .satisfies(refused(ErrorCode.GRAPH_KEY_MISMATCH, "queryTokens=8", "queryTokens=4"));
      assertThatThrownBy(() -> runner.replay(launch, new GraphKey("mixed", 4, 4, true)))
          .satisfies(refused(ErrorCode.GRAPH_KEY_MISMATCH, "mixed", "causal"));

      assertThat(fake.launches().map(seen -> seen.parameters().getInt(0))).containsExactly(4, 8);
    }
  }

  @Test
  void copiesAndFillsAreRecordedToo() {
    try (DeviceAllocation block = DeviceAllocation.allocate(context, "block", 8);
        Arena call = Arena.ofConfined()) {
      MemorySegment host = call.allocate(8);
      stream.fill(block.segment(), (byte) 1);
      try (CapturedGraph graph =
          capture.capture(launch, () -> stream.fill(block.segment().asSlice(0, 4), (byte) 5))) {
        graph.replay(launch);
      }
      stream.copyToHost(block.segment(), host);

      assertThat(host.toArray(ValueLayout.JAVA_BYTE)).containsExactly(5, 5, 5, 5, 1, 1, 1, 1);
    }
  }

  @Test
  void aStreamTellsWhetherItRecords() {
    boolean[] during = new boolean[1];
    capture.capture(launch, () -> during[0] = stream.capturing()).close();

    assertThat(during).containsExactly(true);
    assertThat(stream.capturing()).isFalse();
  }

  @Test
  void whatThrowsWhileItIsRecordedLeavesAStreamThatRuns() {
    assertThatThrownBy(
            () ->
                capture.capture(
                    launch,
                    () -> {
                      attend(1);
                      throw new IllegalStateException("a launch was refused");
                    }))
        .hasMessage("a launch was refused");

    attend(2);
    assertThat(fake.launches().map(seen -> seen.parameters().getInt(0))).containsExactly(2);
  }

  @Test
  void waitingInsideACaptureIsRefusedAndTheStreamRunsAgain() {
    assertThatThrownBy(() -> capture.capture(launch, stream::synchronize))
        .satisfies(refused(ErrorCode.NOT_CAPTURABLE, "cuStreamSynchronize", "900"));

    attend(2);
    assertThat(fake.launches().size()).isEqualTo(1);
  }

  @Test
  void aCaptureThatWasInvalidatedInSilenceIsRefusedAtItsEnd() {
    assertThatThrownBy(
            () ->
                capture.capture(
                    launch,
                    () ->
                        assertThatThrownBy(() -> DeviceAllocation.allocate(context, "inside", 64))
                            .satisfies(refused(ErrorCode.NOT_CAPTURABLE, "cuMemAlloc"))))
        .satisfies(refused(ErrorCode.NOT_CAPTURABLE, "cuStreamEndCapture", "901"));
  }

  @Test
  void theLegacyStreamCannotRecord() {
    CudaLaunchContext legacy =
        new CudaLaunchContext(CudaStream.adopt(context, 0), AttentionObserver.NONE);

    assertThatThrownBy(() -> capture.capture(legacy, () -> attend(1)))
        .satisfies(refused(ErrorCode.NOT_CAPTURABLE, "cuStreamBeginCapture"));
  }

  @Test
  void aGraphBelongsToItsStream() {
    try (CudaStream other = CudaStream.create(context);
        CapturedGraph graph = capture.capture(launch, () -> attend(1))) {
      CudaLaunchContext elsewhere = new CudaLaunchContext(other, AttentionObserver.NONE);

      assertThatThrownBy(() -> graph.replay(elsewhere)).satisfies(refused(ErrorCode.WRONG_STREAM));
      assertThat(fake.launches()).isEmpty();
    }
  }

  @Test
  void aDestroyedGraphIsRefused() {
    CapturedGraph graph = capture.capture(launch, () -> attend(1));
    graph.close();
    graph.close();

    assertThatThrownBy(() -> graph.replay(launch)).satisfies(refused(ErrorCode.CLOSED));
  }

  @Test
  void kernelsAreOnTheDeviceBeforeACaptureBegins() {
    int captured = fake.calls().size();
    capture.capture(launch, () -> attend(1)).close();

    assertThat(fake.calls().indexOf("cuFuncLoad")).isBetween(0, captured - 1);
    assertThat(fake.calls().drop(captured)).doesNotContain("cuLibraryLoadData", "cuFuncLoad");
  }
}
