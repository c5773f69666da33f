package bifocal.core.engine;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.HostLaunchContext;
import bifocal.core.backend.LaunchContext;
import bifocal.core.batch.Batches;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.engine.GraphRunner.Run;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphKey;
import bifocal.core.graph.GraphSupport;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class GraphRunnerTest {
  private static final CommonAttentionMetadata DECODES = decodes(8);
  private static final GraphKey B_8 = new GraphKey("B", 8, 8, true);

  private final LaunchContext launch = new HostLaunchContext(AttentionObserver.NONE);
  private final Recorder recorder = new Recorder();
  private final GraphRunner runner =
      new GraphRunner(recorder, GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE);

  @Test
  void aBatchOfACapturedKeyIsReplayedAndNotLaunched() {
    runner.capture(launch, DECODES, B_8, () -> recorder.launch("B"));
    assertThat(runner.run(launch, DECODES, B_8, () -> recorder.launch("B again")))
        .isEqualTo(Run.REPLAYED);
    assertThat(recorder.ran).containsExactly("B");
  }

  @Test
  void whatWasCapturedIsReplayedWhateverRanOrFailedInBetween() {
    CommonAttentionMetadata mixed = Batches.prefills(7, 1);
    runner.run(launch, mixed, GraphKey.EAGER, () -> recorder.launch("A"));
    runner.capture(launch, DECODES, B_8, () -> recorder.launch("B"));
    assertThatThrownBy(
            () ->
                runner.capture(
                    launch,
                    decodes(4),
                    new GraphKey("B", 4, 4, true),
                    () -> {
                      throw new IllegalStateException("a build failed");
                    }))
        .hasMessage("a build failed");
    runner.run(launch, mixed, GraphKey.EAGER, () -> recorder.launch("A"));
    recorder.ran.clear();
    runner.run(launch, DECODES, B_8, () -> recorder.launch("A"));
    assertThat(recorder.ran).containsExactly("B");
    assertThat(runner.size()).isEqualTo(1);
  }

  @Test
  void aMixedBatchRunsUncaptured() {
    int[] queries = new int[31];
    Arrays.fill(queries, 1);
    queries[0] = 7;
    CommonAttentionMetadata mixed = Batches.prefills(queries);
    GraphKey key = new GraphKey("B", 31, 37, true);
    assertThat(runner.run(launch, mixed, key, () -> recorder.launch("B"))).isEqualTo(Run.EAGER);
    assertRefused(
            ErrorCode.NOT_CAPTURABLE,
            () -> runner.capture(launch, mixed, key, () -> recorder.launch("B")))
        .contains("7 queries")
        .contains("UNIFORM_SINGLE_TOKEN_DECODE");
    assertThat(recorder.ran).containsExactly("B");
  }

  @Test
  void aMixedBatchOfTheSameSizeDoesNotGetTheDecodesGraph() {
    runner.capture(launch, DECODES, B_8, () -> recorder.launch("B"));
    CommonAttentionMetadata mixed = Batches.prefills(3, 1, 1, 1, 1, 1, 0, 0);
    assertThat(runner.run(launch, mixed, B_8, () -> recorder.launch("B for prefills")))
        .isEqualTo(Run.EAGER);
    assertThat(recorder.ran).containsExactly("B for prefills");
  }

  @Test
  void aBatchOfAnotherRouteIsNotReplayed() {
    runner.capture(launch, DECODES, B_8, () -> recorder.launch("B"));
    GraphKey otherRoute = new GraphKey("A", 8, 8, true);
    assertThat(runner.run(launch, DECODES, otherRoute, () -> recorder.launch("A")))
        .isEqualTo(Run.EAGER);
    assertThat(recorder.ran).containsExactly("A");
    assertRefused(ErrorCode.GRAPH_KEY_MISMATCH, () -> runner.replay(launch, otherRoute));
    assertRefused(
        ErrorCode.GRAPH_KEY_MISMATCH, () -> runner.replay(launch, new GraphKey("B", 4, 4, true)));
    assertRefused(ErrorCode.NOT_CAPTURABLE, () -> runner.replay(launch, GraphKey.EAGER));
  }

  @Test
  void paddingDoesNotKeepABatchFromItsGraph() {
    runner.capture(launch, DECODES, B_8, () -> recorder.launch("B"));
    CommonAttentionMetadata padded =
        CommonAttentionMetadata.builder(
                new int[] {0, 1, 2, 3, 4, 5, 300, 900, 7},
                new int[] {40, 41, 42, 43, 44, 1 << 30, -1, 99},
                Batches.table(8, 4),
                Batches.slots(8))
            .live(5)
            .build();
    assertThat(runner.run(launch, padded, B_8, () -> recorder.launch("B"))).isEqualTo(Run.REPLAYED);
  }

  @Test
  void aKeyHasOneGraph() {
    runner.capture(launch, DECODES, B_8, () -> recorder.launch("B"));
    assertRefused(
        ErrorCode.INVALID_PARAMETER,
        () -> runner.capture(launch, DECODES, B_8, () -> recorder.launch("B")));
  }

  @Test
  void closingReleasesEachGraphOnce() {
    runner.capture(launch, DECODES, B_8, () -> recorder.launch("B"));
    runner.close();
    runner.close();
    assertThat(recorder.released).isEqualTo(1);
    assertRefused(ErrorCode.CLOSED, () -> runner.run(launch, DECODES, B_8, () -> {}));
  }

  private static CommonAttentionMetadata decodes(int requests) {
    int[] queries = new int[requests];
    int[] keys = new int[requests];
    Arrays.fill(queries, 1);
    Arrays.fill(keys, 20);
    return Batches.of(queries, keys).build();
  }

  /** Runs launches by writing them down, or records them while a capture is on. */
  private static final class Recorder implements GraphCapture {
    private final List<String> ran = new ArrayList<>();
    private List<String> target = ran;
    private int released;

    private void launch(String kernel) {
      target.add(kernel);
    }

    @Override
    public CapturedGraph capture(LaunchContext launch, Runnable launches) {
      List<String> recorded = new ArrayList<>();
      target = recorded;
      try {
        launches.run();
      } finally {
        target = ran;
      }
      return new CapturedGraph() {
        @Override
        public void replay(LaunchContext context) {
          ran.addAll(recorded);
        }

        @Override
        public void close() {
          released++;
        }
      };
    }
  }
}
