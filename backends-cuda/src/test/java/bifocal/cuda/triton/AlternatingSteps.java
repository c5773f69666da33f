package bifocal.cuda.triton;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.AttentionMetadata;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.engine.GraphCapture.CapturedGraph;
import bifocal.core.workspace.Workspace;
import bifocal.cuda.driver.CudaGraphCapture;
import java.util.Arrays;

/** Steps of text and steps with an image, on a pair that is closed at the end. */
public final class AlternatingSteps {
  private static final int TEXT_ROWS = 4;
  private static final int IMAGE_ROWS = 51;

  private AlternatingSteps() {}

  /**
   * Text and images take turns; scratch is filled with rubbish after every step, and outputs stay
   * what they were.
   *
   * @param sums whether log-sum-exps are asked for
   */
  public static <M extends AttentionMetadata> void leaveNoTrace(
      TritonRun<M> pair, boolean sums, int steps) {
    try (TritonRun<M> run = written(pair)) {
      CommonAttentionMetadata text = run.decodes(TEXT_ROWS, TEXT_ROWS, 1, 17, 300, 1, 45);
      CommonAttentionMetadata mixed = withImage(run);
      long zeroed = run.workspace.plan().zeroedBytes();
      byte[][] first = new byte[2][];
      for (int i = 0; i < steps; i++) {
        boolean look = i < 2 || i % 500 > 497 || i >= steps - 2;
        try (Workspace.Step step = run.workspace.openStep()) {
          M metadata = run.build(step, i % 2 == 0 ? text : mixed);
          if (look) {
            run.poison();
          }
          if (sums) {
            run.forward(metadata);
          } else {
            run.forwardWithoutLse(metadata);
          }
          if (look) {
            byte[] out = run.out(i % 2 == 0 ? TEXT_ROWS : IMAGE_ROWS);
            first[i % 2] = i < 2 ? out : first[i % 2];
            assertThat(out).as("output of step %d", i).isEqualTo(first[i % 2]);
          }
        }
        run.device.stream()
            .fill(
                run.workspace.memory().asSlice(zeroed, run.workspace.memory().byteSize() - zeroed),
                (byte) 0xFF);
      }
      assertThat(first[0]).isNotEqualTo(Arrays.copyOf(first[1], first[0].length));
    }
  }

  /** A step with an image leaves the same when it is recorded and replayed. */
  public static <M extends AttentionMetadata> void replaysImages(TritonRun<M> pair) {
    try (TritonRun<M> run = written(pair);
        Workspace.Step step = run.workspace.openStep()) {
      M metadata = run.build(step, withImage(run));
      run.forward(metadata);
      byte[] eager = run.out(IMAGE_ROWS);
      try (CapturedGraph graph =
          new CudaGraphCapture().capture(run.device.launch(), () -> run.forward(metadata))) {
        for (int replay = 0; replay < 3; replay++) {
          run.poison();
          graph.replay(run.device.launch());
          assertThat(run.out(IMAGE_ROWS)).as("replay %d", replay).isEqualTo(eager);
        }
      }
    }
  }

  private static <M extends AttentionMetadata> TritonRun<M> written(TritonRun<M> run) {
    for (int r = 0; r < TritonRun.REQUESTS; r++) {
      run.write(r, 300, 1);
    }
    return run;
  }

  /** Text before, in and after an image, a decode and a chunk. */
  private static CommonAttentionMetadata withImage(TritonRun<?> run) {
    return run.withImage(new int[] {0, 40, 41, 51}, new int[] {300, 299, 60}, 1, 270, 290);
  }
}
