package bifocal.cuda.triton;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.SlotMapping;
import bifocal.core.engine.GraphRunner;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphSupport;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaGraphCapture;
import bifocal.cuda.fake.FakeCuda;
import bifocal.cuda.pack.KernelPack;
import bifocal.cuda.triton.TritonContract.Kind;
import com.sun.management.ThreadMXBean;
import io.vavr.collection.Seq;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/** What a step calls of the driver, and what is left when a call fails. */
class TritonLaunchTest {
  private static final int BLOCKS = 1 + 4 * 25;
  private static final int ILLEGAL_STATE = 401;
  private static final int ILLEGAL_ADDRESS = 700;
  private static final int PROGRAMMATIC = 6;

  @TempDir static Path folder;
  private static Path packs;

  private FakeCuda fake;

  @BeforeAll
  static void pack() {
    packs = TritonEmulatedTest.pack(folder);
  }

  @BeforeEach
  void reset() {
    fake = FakeCuda.resetOrSkip();
  }

  private void withDevice(Consumer<TritonDevice> body) {
    try (CudaContext context = CudaContext.primary(fake.driver(), 0)) {
      KernelPack pack = KernelPack.open(packs, context.device().capability()).get();
      try (TritonDevice device = TritonDevice.of(context, pack)) {
        body.accept(device);
      }
    }
  }

  private void with(Kind kind, Consumer<TritonRun<?>> body) {
    withDevice(
        device -> {
          try (TritonRun<?> run = TritonRun.open(device, kind, BLOCKS)) {
            body.accept(run);
          }
        });
  }

  private static CommonAttentionMetadata mixed(TritonRun<?> run) {
    return run.batch(new int[] {0, 40, 41, 42}, new int[] {300, 299, 7}, 3, 1);
  }

  private static <M extends AttentionMetadata> void step(
      TritonRun<M> run, CommonAttentionMetadata batch) {
    try (Workspace.Step step = run.workspace.openStep()) {
      run.forward(run.build(step, batch));
    }
  }

  @Test
  void stepIsBuiltWithOneCopy() {
    for (Kind kind : new Kind[] {Kind.GENERAL, Kind.CAUSAL}) {
      with(kind, run -> assertThat(copiesOfBuild(run)).as("%s", kind).isEqualTo(1));
      fake.reset();
    }
  }

  private <M extends AttentionMetadata> int copiesOfBuild(TritonRun<M> run) {
    CommonAttentionMetadata batch = mixed(run);
    step(run, batch);
    int before = fake.calls().size();
    try (Workspace.Step step = run.workspace.openStep()) {
      run.build(step, batch);
      return fake.calls().drop(before).count("cuMemcpyHtoDAsync_v2"::equals);
    }
  }

  @Test
  void mixedBatchLaunchesPrefillDecodeAndMergeInThisOrder() {
    with(
        Kind.CAUSAL,
        run -> {
          int before = fake.launches().size();
          step(run, mixed(run));
          Seq<FakeCuda.Launch> launches = fake.launches().drop(before);

          assertThat(launches.size()).isEqualTo(3);
          FakeCuda.Launch prefill = launches.get(0);
          FakeCuda.Launch decode = launches.get(1);
          FakeCuda.Launch merge = launches.get(2);
          assertThat(prefill.gridX()).as("one tile of 40 tokens, two KV heads").isEqualTo(2);
          assertThat(decode.gridX()).as("decode tiles").isEqualTo(2);
          assertThat(decode.gridY()).as("KV heads").isEqualTo(2);
          assertThat(decode.gridZ()).as("splits").isGreaterThan(1);
          assertThat(merge.gridX()).isEqualTo(2);
          assertThat(merge.gridY()).as("query heads").isEqualTo(run.layer.numHeads());
          assertThat(merge.attributes().get(PROGRAMMATIC).get()).isEqualTo(1);
          assertThat(decode.attributes().toJavaMap()).doesNotContainKey(PROGRAMMATIC);
          assertThat(prefill.sharedBytes()).isEqualTo(65_536);
        });
  }

  /** A step's layers are written one after another from one slot mapping. */
  @Test
  void slotsOfTheHostAreCopiedOnceForAllLayersOfAStep() {
    with(Kind.CAUSAL, this::requireOneCopyOfSlots);
  }

  private <M extends AttentionMetadata> void requireOneCopyOfSlots(TritonRun<M> run) {
    AttentionImpl<M> second = run.anotherLayer();
    SlotMapping slots = run.slots(0, 100, 1);
    run.write(0, 7, 1);
    int before = fake.calls().size();

    run.write(run.impl, slots);
    run.write(second, slots);
    assertThat(copies(before)).as("copies of the first step").isEqualTo(1);

    slots.slots().data().setAtIndex(ValueLayout.JAVA_LONG, 99, -1);
    run.write(run.impl, slots);
    run.write(second, slots);
    assertThat(copies(before)).as("copies once a slot changed in place").isEqualTo(2);
  }

  private int copies(int from) {
    return fake.calls().drop(from).count("cuMemcpyHtoDAsync_v2"::equals);
  }

  @Test
  void slotsOfTheHostAreNotRecordedInAGraph() {
    with(
        Kind.CAUSAL,
        run ->
            refused(
                ErrorCode.NOT_CAPTURABLE,
                () ->
                    new CudaGraphCapture()
                        .capture(run.device.launch(), () -> run.write(0, 100, 1))));
  }

  @Test
  void packWithoutPrefillKernelsServesDecodesAndRefusesPrompts(@TempDir Path other) {
    Path decoding = TritonEmulatedTest.packForDecodes(other);
    try (CudaContext context = CudaContext.primary(fake.driver(), 0);
        TritonDevice device =
            TritonDevice.of(
                context, KernelPack.open(decoding, context.device().capability()).get());
        TritonRun<?> run = TritonRun.openShape(device, TritonEmulatedTest.DECODE, BLOCKS)) {
      int before = fake.launches().size();
      step(run, run.decodes(4, 4, 1, 17, 300, 1, 45));
      assertThat(fake.launches().size()).as("launches").isGreaterThan(before);
      refused(ErrorCode.NATIVE_MISSING, () -> step(run, mixed(run)));
    }
  }

  @Test
  void emptyBatchLaunchesNothing() {
    with(
        Kind.GENERAL,
        run -> {
          int before = fake.launches().size();
          step(run, run.batch(new int[] {0, 0, 0}, new int[] {5, 0}, 2, 1));
          step(run, run.batch(new int[] {0}, new int[] {}, 0, 1));
          assertThat(fake.launches().size()).isEqualTo(before);
        });
  }

  @Test
  void forwardAllocatesNothing() {
    with(Kind.SPLIT, TritonLaunchTest::requireNoAllocation);
  }

  private static <M extends AttentionMetadata> void requireNoAllocation(TritonRun<M> run) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    try (Workspace.Step step = run.workspace.openStep()) {
      M metadata = run.build(step, mixed(run));
      long least = Long.MAX_VALUE;
      for (int round = 0; round < 60 && least > 0; round++) {
        long before = threads.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < 200; i++) {
          run.forward(metadata);
        }
        least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
      }
      assertThat(least).as("bytes of 200 forwards once compiled").isZero();
    }
  }

  @Test
  void whatDoesNotFitIsRefusedBeforeALaunch() {
    with(Kind.CAUSAL, TritonLaunchTest::refusals);
  }

  private static <M extends AttentionMetadata> void refusals(TritonRun<M> run) {
    M over;
    try (Workspace.Step step = run.workspace.openStep()) {
      M metadata = run.build(step, mixed(run));
      over = metadata;
      refused(
          ErrorCode.SHAPE_MISMATCH,
          () ->
              run.impl.forward(
                  run.device.launch(), run.q.rows(0, 41), run.cache, metadata, run.output));
      TensorView lse = run.output.lse().get();
      refused(
          ErrorCode.DTYPE_MISMATCH,
          () ->
              run.impl.forward(
                  run.device.launch(), run.q, run.cache, metadata, AttentionOutput.of(lse)));
      TensorView shifted =
          TensorView.of(
              run.q.data().asSlice(2),
              DType.BF16,
              run.q.device(),
              new long[] {42, run.q.size(1), run.q.size(2)},
              new long[] {run.q.stride(0), run.q.stride(1), 1});
      refused(
          ErrorCode.SHAPE_MISMATCH,
          () -> run.impl.forward(run.device.launch(), shifted, run.cache, metadata, run.output));
    }
    refused(ErrorCode.CLOSED, () -> run.forward(over));
    refused(
        ErrorCode.BLOCK_OUT_OF_RANGE,
        () -> step(run, run.batch(new int[] {0, 1}, new int[] {300}, 1, BLOCKS)));
    refused(
        ErrorCode.BLOCK_OUT_OF_RANGE,
        () -> step(run, run.batch(new int[] {0, 1}, new int[] {300}, 1, -3)));
    refused(
        ErrorCode.BLOCK_TABLE_TOO_SHORT,
        () -> step(run, run.batch(new int[] {0, 1}, new int[] {401 + 16}, 1, 1)));
  }

  private static void refused(ErrorCode code, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(
            BifocalException.class, e -> assertThat(e.code()).as(e.getMessage()).isEqualTo(code));
  }

  @Test
  void binaryWithOtherParametersThanTheManifestIsRefused(@TempDir Path other) {
    TritonEmulatedTest.pack(other);
    withDevice(device -> {});
    try (CudaContext context = CudaContext.primary(fake.driver(), 0)) {
      KernelPack pack =
          KernelPack.open(
                  TritonEmulatedTest.packWithShiftedParameter(other), context.device().capability())
              .get();
      try (TritonDevice device = TritonDevice.of(context, pack)) {
        assertThatThrownBy(() -> TritonRun.open(device, Kind.CAUSAL, BLOCKS))
            .hasMessageContaining("parameter")
            .isInstanceOfSatisfying(
                BifocalException.class,
                e -> assertThat(e.code()).isEqualTo(ErrorCode.NATIVE_MISSING));
      }
    }
    assertThat(fake.live().toJavaMap()).isEmpty();
  }

  private void everything(TritonDevice device) {
    try (TritonRun<?> run = TritonRun.open(device, Kind.SPLIT, BLOCKS)) {
      run.write(0, 100, 1);
      run.write(run.anotherLayer(), run.slots(1, 7, 1));
      step(run, mixed(run));
      step(run, mixed(run));
      captured(run);
    }
  }

  private static <M extends AttentionMetadata> void captured(TritonRun<M> run) {
    CommonAttentionMetadata decodes = run.decodes(4, 4, 1, 17, 300, 1, 45);
    try (GraphRunner graphs =
            new GraphRunner(new CudaGraphCapture(), GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE);
        Workspace.Step step = run.workspace.openStep()) {
      M metadata = run.build(step, decodes);
      graphs.capture(
          run.device.launch(), decodes, metadata.graphKey(), () -> run.forward(metadata));
      graphs.replay(run.device.launch(), metadata.graphKey());
    }
  }

  /** Every call fails once: the failure is typed, and nothing is left. */
  @TestFactory
  Stream<DynamicTest> aFailedCallIsTypedAndNothingLeaks() {
    fake.driver();
    fake.reset();
    withDevice(this::everything);
    assertThat(fake.live().toJavaMap()).isEmpty();
    return fake.calls()
        .zipWithIndex()
        .map(call -> dynamicTest(call._2 + " " + call._1, () -> failsCleanly(call._2)))
        .toJavaStream();
  }

  private void failsCleanly(int index) {
    fake.reset();
    fake.failAt(index, ILLEGAL_STATE);

    Throwable thrown = catchThrowable(() -> withDevice(this::everything));

    assertThat(thrown).isInstanceOf(BifocalException.class);
    assertThat(fake.live().toJavaMap()).as("alive after %s", thrown.getMessage()).isEmpty();
  }

  /** Every call meets a fault once: from then on the driver is asked nothing more. */
  @TestFactory
  Stream<DynamicTest> aFaultLosesTheDeviceForEveryoneWhoUsesIt() {
    fake.driver();
    fake.reset();
    withDevice(this::everything);
    Seq<String> calls = fake.calls();
    return calls
        .zipWithIndex()
        .drop(calls.indexOf("cuCtxSetCurrent"))
        .map(call -> dynamicTest(call._2 + " " + call._1, () -> losesTheDevice(call._2)))
        .toJavaStream();
  }

  private void losesTheDevice(int index) {
    fake.reset();
    fake.failAt(index, ILLEGAL_ADDRESS);

    Throwable thrown = catchThrowable(() -> withDevice(this::everything));

    assertThat(thrown)
        .isInstanceOfSatisfying(
            BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.DEVICE_LOST));
    assertThat(fake.calls().size()).as("calls after %s", thrown.getMessage()).isEqualTo(index + 1);
  }
}
