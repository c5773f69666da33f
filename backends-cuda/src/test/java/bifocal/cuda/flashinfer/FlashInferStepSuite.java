package bifocal.cuda.flashinfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvLayout;
import bifocal.core.cache.KvLayouts;
import bifocal.core.engine.GraphRunner;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.workspace.Workspace;
import bifocal.cuda.driver.CudaGraphCapture;
import bifocal.cuda.flashinfer.FlashInferContract.Kind;
import bifocal.cuda.flashinfer.FlashInferSuite.Shape;
import bifocal.cuda.triton.AlternatingSteps;
import bifocal.cuda.triton.TritonAttnBackend;
import bifocal.cuda.triton.TritonHost;
import bifocal.cuda.triton.TritonRun;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Steps of {@code FLASHINFER}: captured ones, and children that take turns over one cache. */
interface FlashInferStepSuite {
  /** A device with modules. */
  FlashInferDevice device();

  /** Shapes of layers. */
  List<Shape> shapes();

  /** Steps of {@link #childrenAlternateOverOneCacheWithoutATrace}. */
  default int alternatingSteps() {
    return 30;
  }

  private static List<Shape> onePerHead(List<Shape> shapes) {
    List<Shape> chosen = new ArrayList<>();
    for (Shape shape : shapes) {
      if (shape.pair()
          && chosen.stream().noneMatch(other -> other.headSize() == shape.headSize())) {
        chosen.add(shape);
      }
    }
    return chosen;
  }

  /**
   * Text and a batch with an image take turns on a pair (C12): the general child leaves rubbish in
   * shared scratch, which is filled with more of it after every step, and neither leaves a trace.
   */
  @TestFactory
  default Stream<DynamicTest> childrenAlternateOverOneCacheWithoutATrace() {
    List<DynamicTest> tests = new ArrayList<>();
    for (Shape shape : shapes()) {
      boolean first = onePerHead(shapes()).contains(shape);
      for (Kind kind : List.of(Kind.SPLIT, Kind.LOWERED)) {
        for (boolean sums : new boolean[] {false, true}) {
          boolean chosen = sums ? first : device().pack().has(shape.xqa(images(shape)));
          if (chosen && shape.pair()) {
            tests.add(
                dynamicTest(
                    kind + " " + shape + (sums ? ", log-sum-exps" : ""),
                    () -> alternate(kind, shape, sums)));
          }
        }
      }
    }
    return tests.stream();
  }

  private void alternate(Kind kind, Shape shape, boolean sums) {
    AlternatingSteps.leaveNoTrace(
        open(FlashInferContract.backend(kind, device()), shape, images(shape), KvLayouts.NHD),
        sums,
        alternatingSteps());
  }

  private static AttentionMask images(Shape shape) {
    AttentionMask mask = AttentionMask.CAUSAL.withImages(ImageMask.CLAMP_PAST);
    return shape.windows() ? mask.withWindow(100) : mask;
  }

  private <M extends AttentionMetadata> TritonRun<M> open(
      AttentionBackend<M> backend, Shape shape, AttentionMask mask, KvLayout layout) {
    return TritonRun.over(
        backend,
        device().context(),
        shape.layer(mask, 2),
        layout,
        shape.blockSize(),
        1 + 4 * 400 / 16);
  }

  /** What either child writes, either reads, in both layouts: four equal results. */
  @TestFactory
  default Stream<DynamicTest> childrenReadWhatEitherWrote() {
    List<DynamicTest> tests = new ArrayList<>();
    for (Shape shape : onePerHead(shapes())) {
      for (KvLayout layout : new KvLayout[] {KvLayouts.NHD, KvLayouts.HND}) {
        if (shape.pair()) {
          tests.add(dynamicTest(shape + " " + layout, () -> pairs(shape, layout)));
        }
      }
    }
    return tests.stream();
  }

  private void pairs(Shape shape, KvLayout layout) {
    AttentionBackend<?> ours = new TritonAttnBackend(TritonHost.with(device().kernels()));
    AttentionBackend<?> theirs = FlashInferContract.backend(Kind.ALONE, device());
    byte[][] outs = new byte[4][];
    int at = 0;
    for (AttentionBackend<?> writer : List.of(ours, theirs)) {
      for (AttentionBackend<?> reader : List.of(ours, theirs)) {
        try (TritonRun<?> run = open(reader, shape, AttentionMask.CAUSAL, layout);
            var other =
                writer.createImpl(run.layer, bifocal.core.layer.LayerParameters.NONE, run.spec)) {
          run.writeBy(other, 0, 300, 1);
          outs[at++] = decoded(run);
        }
      }
    }
    assertThat(outs[0]).as("TRITON_ATTN reads what either wrote").isEqualTo(outs[2]);
    assertThat(outs[1]).as("FLASHINFER reads what either wrote").isEqualTo(outs[3]);
    assertThat(largest(outs[0], outs[1])).as("difference of the readers").isLessThan(0.02f);
  }

  private static <M extends AttentionMetadata> byte[] decoded(TritonRun<M> run) {
    try (Workspace.Step step = run.workspace.openStep()) {
      M metadata = run.build(step, run.batch(new int[] {0, 20}, new int[] {300}, 1, 1));
      run.poison();
      run.forward(metadata);
      return run.out(20);
    }
  }

  private static float largest(byte[] left, byte[] right) {
    float most = 0;
    for (int i = 0; i < left.length; i += 2) {
      most = Math.max(most, Math.abs(bfloat16(left, i) - bfloat16(right, i)));
    }
    return most;
  }

  private static float bfloat16(byte[] bytes, int at) {
    return Float.intBitsToFloat((bytes[at + 1] & 0xFF) << 24 | (bytes[at] & 0xFF) << 16);
  }

  /** A lowered step is two branches of a graph, the images' and the text's. */
  @TestFactory
  default Stream<DynamicTest> recordedStepsWithImagesAreReplayedAsTheyRan() {
    return onePerHead(shapes()).stream()
        .filter(shape -> replays() && shape.pair())
        .map(
            shape ->
                dynamicTest(
                    shape.toString(),
                    () ->
                        AlternatingSteps.replaysImages(
                            open(
                                FlashInferContract.backend(Kind.LOWERED, device()),
                                shape,
                                images(shape),
                                KvLayouts.NHD))));
  }

  /** A stand-in for the driver does not record what modules launch, so only a GPU replays. */
  default boolean replays() {
    return true;
  }

  @TestFactory
  default Stream<DynamicTest> capturedDecodesAreReplayedForOtherLengthsAndPadding() {
    List<DynamicTest> tests = new ArrayList<>();
    for (Shape shape : replays() ? shapes() : List.<Shape>of()) {
      ModuleKey xqa = shape.xqa(AttentionMask.CAUSAL);
      for (boolean sums : new boolean[] {false, true}) {
        if (padsPlans(shape) || (!sums && !shape.cap() && device().pack().has(xqa))) {
          tests.add(
              dynamicTest(shape + (sums ? ", log-sum-exps" : ""), () -> replays(shape, sums)));
        }
      }
    }
    return tests.stream();
  }

  /** Kernels of FA3 plan anew for other lengths, into lists of other sizes. */
  private boolean padsPlans(Shape shape) {
    return device()
        .pack()
        .has(
            new ModuleKey.Prefill(
                ModuleKey.Engine.FA2, shape.dtype(), shape.headSize(), false, shape.cap()));
  }

  private void replays(Shape shape, boolean sums) {
    replays(
        open(
            FlashInferContract.backend(Kind.ALONE, device()),
            shape,
            AttentionMask.CAUSAL,
            KvLayouts.NHD),
        sums);
  }

  private static <M extends AttentionMetadata> void replays(TritonRun<M> run, boolean sums) {
    try (run) {
      for (int r = 0; r < TritonRun.REQUESTS; r++) {
        run.write(r, 300, 1);
      }
      CommonAttentionMetadata first = run.decodes(4, 4, 1, 17, 300, 1, 45);
      CommonAttentionMetadata other = run.decodes(4, 3, 1, 299, 5, 160, -7);
      CommonAttentionMetadata fewer = run.decodes(3, 3, 1, 299, 5, 160);
      try (GraphRunner graphs =
          new GraphRunner(new CudaGraphCapture(), GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE)) {
        try (Workspace.Step step = run.workspace.openStep()) {
          M metadata = run.build(step, first);
          forward(run, metadata, sums);
          graphs.capture(
              run.device.launch(), first, metadata.graphKey(), () -> forward(run, metadata, sums));
        }
        replay(run, graphs, other, sums);
        try (Workspace.Step step = run.workspace.openStep()) {
          M metadata = run.build(step, fewer);
          assertThatThrownBy(() -> graphs.replay(run.device.launch(), metadata.graphKey()))
              .isInstanceOfSatisfying(
                  BifocalException.class,
                  e -> assertThat(e.code()).isEqualTo(ErrorCode.GRAPH_KEY_MISMATCH));
        }
      }
    }
  }

  private static <M extends AttentionMetadata> void forward(
      TritonRun<M> run, M metadata, boolean sums) {
    if (sums) {
      run.forward(metadata);
    } else {
      run.forwardWithoutLse(metadata);
    }
  }

  private static <M extends AttentionMetadata> void replay(
      TritonRun<M> run, GraphRunner graphs, CommonAttentionMetadata other, boolean sums) {
    try (Workspace.Step step = run.workspace.openStep()) {
      M metadata = run.build(step, other);
      run.poison();
      forward(run, metadata, sums);
      byte[] eager = run.out(4);
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
      byte[] padding = Arrays.copyOfRange(eager, eager.length / 4 * 3, eager.length);
      assertThat(padding).as("row of padding").containsOnly((byte) 0xFF);
    }
  }
}
