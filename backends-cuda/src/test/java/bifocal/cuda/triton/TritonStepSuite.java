package bifocal.cuda.triton;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.AttentionMetadata;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.engine.GraphRunner;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphSupport;
import bifocal.core.workspace.Workspace;
import bifocal.cuda.driver.CudaGraphCapture;
import bifocal.cuda.triton.TritonContract.Kind;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/** Steps of {@code TRITON_ATTN}: captured ones, and caches that are larger than 32 bits count. */
interface TritonStepSuite {
  /** A device with a pack. */
  TritonDevice device();

  /** Blocks of a cache that has more elements than 32 bits count, 0 where there is no room. */
  default long elementsOfLargeCache() {
    return (1L << 32) + (1L << 24);
  }

  /** Steps of {@link #childrenAlternateOverOneCacheWithoutATrace}. */
  default int alternatingSteps() {
    return 30;
  }

  /** Two batches take turns on a pair, so that its children do; neither leaves a trace. */
  @Test
  default void childrenAlternateOverOneCacheWithoutATrace() {
    try (TritonRun<?> run = TritonRun.openWithImages(device(), Kind.SPLIT, 1 + 4 * 400)) {
      alternate(run, alternatingSteps());
    }
  }

  private static <M extends AttentionMetadata> void alternate(TritonRun<M> run, int steps) {
    for (int r = 0; r < TritonRun.REQUESTS; r++) {
      run.write(r, 300, 1);
    }
    CommonAttentionMetadata text = run.decodes(4, 4, 1, 17, 300, 1, 45);
    CommonAttentionMetadata mixed =
        run.withImage(new int[] {0, 40, 41, 51}, new int[] {300, 299, 60}, 1, 270, 290);
    byte[][] first = new byte[2][];
    for (int i = 0; i < steps; i++) {
      boolean look = i < 2 || i % 500 > 497 || i >= steps - 2;
      try (Workspace.Step step = run.workspace.openStep()) {
        M metadata = run.build(step, i % 2 == 0 ? text : mixed);
        if (look) {
          run.poison();
        }
        run.forward(metadata);
        if (look) {
          byte[] out = run.out(i % 2 == 0 ? 4 : 51);
          first[i % 2] = i < 2 ? out : first[i % 2];
          assertThat(out).as("output of step %d", i).isEqualTo(first[i % 2]);
        }
      }
    }
    assertThat(first[0]).isNotEqualTo(Arrays.copyOf(first[1], first[0].length));
  }

  @Test
  default void capturedDecodesAreReplayedForOtherLengthsAndPadding() {
    for (Kind kind : new Kind[] {Kind.CAUSAL, Kind.GENERAL, Kind.SPLIT}) {
      try (TritonRun<?> run = TritonRun.open(device(), kind, 1 + 4 * 400)) {
        replays(run);
      }
    }
  }

  private static <M extends AttentionMetadata> void replays(TritonRun<M> run) {
    for (int r = 0; r < TritonRun.REQUESTS; r++) {
      run.write(r, 300, 1);
    }
    CommonAttentionMetadata first = run.decodes(4, 4, 1, 17, 300, 1, 45);
    CommonAttentionMetadata other = run.decodes(4, 3, 1, 299, 5, 160, -7);
    CommonAttentionMetadata fewer = run.decodes(3, 3, 1, 299, 5, 160);
    try (GraphRunner graphs = new GraphRunner(new CudaGraphCapture(), GraphSupport.UNIFORM_BATCH)) {
      try (Workspace.Step step = run.workspace.openStep()) {
        M metadata = run.build(step, first);
        run.forward(metadata);
        graphs.capture(
            run.device.launch(), first, metadata.graphKey(), () -> run.forward(metadata));
      }
      byte[] eager;
      try (Workspace.Step step = run.workspace.openStep()) {
        M metadata = run.build(step, other);
        run.poison();
        run.forward(metadata);
        eager = run.out(4);
        run.poison();
        assertThat(
                graphs.run(
                    run.device.launch(),
                    other,
                    metadata.graphKey(),
                    () -> {
                      throw new AssertionError("ran eagerly");
                    }))
            .isEqualTo(GraphRunner.Run.REPLAYED);
        assertThat(run.out(4)).as("replayed output").isEqualTo(eager);
      }
      byte[] padding = Arrays.copyOfRange(eager, eager.length / 4 * 3, eager.length);
      assertThat(padding).as("row of padding").containsOnly((byte) 0xFF);
      try (Workspace.Step step = run.workspace.openStep()) {
        M metadata = run.build(step, fewer);
        assertThatThrownBy(() -> graphs.replay(run.device.launch(), metadata.graphKey()))
            .isInstanceOfSatisfying(
                BifocalException.class,
                e -> assertThat(e.code()).isEqualTo(ErrorCode.GRAPH_KEY_MISMATCH));
      }
    }
  }

  /**
   * Decodes of one and of two queries, and short prompts, captured with two requests of four. Pairs
   * are captured for single queries alone: more of them may hold an image.
   */
  @Test
  default void capturedStepsServeMoreRequestsThanWereLiveWhenTheyWereCaptured() {
    for (Kind kind : new Kind[] {Kind.CAUSAL, Kind.GENERAL, Kind.SPLIT}) {
      for (int queries : kind == Kind.SPLIT ? new int[] {1} : new int[] {1, 2, 16}) {
        try (TritonRun<?> run = TritonRun.open(device(), kind, 1 + 4 * 400)) {
          replaysForMore(run, queries);
        }
      }
    }
  }

  private static <M extends AttentionMetadata> void replaysForMore(TritonRun<M> run, int queries) {
    for (int r = 0; r < TritonRun.REQUESTS; r++) {
      run.write(r, 400, 1);
    }
    int rows = TritonRun.REQUESTS * queries;
    CommonAttentionMetadata captured = run.uniform(4, 2, queries, 60, 45);
    CommonAttentionMetadata more = run.uniform(4, 4, queries, 399, 50, 160, 41);
    try (GraphRunner graphs = new GraphRunner(new CudaGraphCapture(), GraphSupport.UNIFORM_BATCH)) {
      try (Workspace.Step step = run.workspace.openStep()) {
        M metadata = run.build(step, captured);
        run.forward(metadata);
        graphs.capture(
            run.device.launch(), captured, metadata.graphKey(), () -> run.forward(metadata));
      }
      try (Workspace.Step step = run.workspace.openStep()) {
        M metadata = run.build(step, more);
        run.poison();
        run.forward(metadata);
        byte[] eager = run.out(rows);
        run.poison();
        graphs.replay(run.device.launch(), metadata.graphKey());
        assertThat(run.out(rows)).as("%d queries each", queries).isEqualTo(eager);
      }
    }
  }

  /** The same keys in blocks near the beginning and beyond 2^32 elements give the same bits. */
  @Test
  default void blocksBeyond32BitsOfElementsAreReadAndWritten() {
    if (elementsOfLargeCache() == 0) {
      return;
    }
    int perBlock;
    try (TritonRun<?> small = TritonRun.open(device(), Kind.CAUSAL, 2)) {
      perBlock = (int) (small.spec.blockBytes() / small.layer.dtype().bytes());
    }
    int blocks = (int) (elementsOfLargeCache() / perBlock);
    for (Kind kind : new Kind[] {Kind.CAUSAL, Kind.GENERAL}) {
      try (TritonRun<?> run = TritonRun.open(device(), kind, blocks)) {
        assertThat(outOver(run, blocks - run.tableBlocks())).isEqualTo(outOver(run, 1));
      }
    }
  }

  private static <M extends AttentionMetadata> byte[] outOver(TritonRun<M> run, int firstBlock) {
    for (int r = 0; r < 2; r++) {
      run.write(r, 300, firstBlock);
    }
    CommonAttentionMetadata batch =
        run.batch(new int[] {0, 40, 41}, new int[] {300, 299}, 2, firstBlock);
    try (Workspace.Step step = run.workspace.openStep()) {
      M metadata = run.build(step, batch);
      run.poison();
      run.forward(metadata);
      return run.out(41);
    }
  }
}
