package bifocal.cuda.flashinfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.InvalidReason;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.engine.GraphCapture.CapturedGraph;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphKey;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaGraphCapture;
import bifocal.cuda.fake.FakeCuda;
import bifocal.cuda.flashinfer.FlashInferContract.Kind;
import bifocal.cuda.flashinfer.FlashInferSuite.Shape;
import bifocal.cuda.flashinfer.ModuleKey.Engine;
import bifocal.cuda.pack.KernelPack;
import bifocal.cuda.triton.EmulatedKernels;
import bifocal.cuda.triton.TritonDevice;
import bifocal.cuda.triton.TritonRun;
import bifocal.tvm.Any;
import bifocal.tvm.TvmModule;
import com.sun.management.ThreadMXBean;
import io.vavr.collection.HashSet;
import io.vavr.collection.Seq;
import io.vavr.control.Option;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is planned and called, and what is refused before or by a module. */
class FlashInferLaunchTest {
  private static final int HEAD = 64;
  private static final Shape SHAPE = new Shape(HEAD, 2, 16, false, true);
  private static final ModuleKey.Prefill FA2 =
      new ModuleKey.Prefill(Engine.FA2, DType.BF16, HEAD, false, false);
  private static final ModuleKey.Prefill FA3 =
      new ModuleKey.Prefill(Engine.FA3, DType.BF16, HEAD, false, false);
  private static final ModuleKey.Decode CORES =
      new ModuleKey.Decode(DType.BF16, HEAD, false, false);

  private static final ModuleKey.Xqa XQA = new ModuleKey.Xqa(DType.BF16, HEAD, 16, 2, false);

  @TempDir Path packs;
  private final List<AutoCloseable> parts = new ArrayList<>();
  private final FakeCuda fake = FakeCuda.resetOrSkip();
  private @Nullable TritonDevice kernels;

  @BeforeEach
  void open() {
    fake.devices(1, 9, 0, 256L << 20);
    CudaContext context = keep(CudaContext.primary(fake.driver(), 0));
    KernelPack pack =
        KernelPack.open(FlashInferEmulatedTest.pack(packs), context.device().capability()).get();
    kernels = keep(TritonDevice.of(context, pack));
    keep(FlashInferEmulatedTest.emulate(fake, pack));
  }

  private <T extends AutoCloseable> T keep(T part) {
    parts.add(part);
    return part;
  }

  @AfterEach
  void close() throws Exception {
    for (AutoCloseable part : parts.reversed()) {
      part.close();
      if (part instanceof EmulatedKernels emulated) {
        emulated.requireFine();
      }
    }
  }

  private FlashInferDevice device(FakeModules modules) {
    TritonDevice ours = Objects.requireNonNull(kernels);
    return keep(
        new FlashInferDevice(
            ours,
            FlashInferPack.open(modules.write(), ours.context().device().capability()).get(),
            FlashInferEmulatedTest::rowKernels));
  }

  private FlashInferDevice whole() {
    return device(FakeModules.in(packs).with(FA2).with(FA3).with(CORES));
  }

  private FlashInferDevice withXqa() {
    return device(FakeModules.in(packs).with(FA2).with(FA3).with(CORES).with(XQA));
  }

  private TritonRun<FlashInferMetadata> run(FlashInferDevice device, DecodeKernels decode) {
    return keep(
        TritonRun.over(
            new FlashInferBackend(FlashInferHost.with(device), decode),
            device.context(),
            SHAPE.layer(AttentionMask.CAUSAL, 2),
            KvLayouts.NHD,
            16,
            120));
  }

  private TritonRun<FlashInferMetadata> run(FlashInferDevice device) {
    return run(device, DecodeKernels.XQA);
  }

  private static List<ModuleKey> keys(FlashInferMetadata step) {
    return ((FlashInferStep) step)
        .launches().stream().map(FlashInferStep.Launch::key).collect(Collectors.toList());
  }

  /** Plans, runs and the stream of the last call, of the module for a key. */
  private static long[] calls(FlashInferDevice device, ModuleKey key) {
    LoadedModule loaded = device.module(key);
    TvmModule module =
        loaded.runtime().open(device.pack().directory().resolve(loaded.entry().file()));
    return ((Any.Array) module.function("calls").invoke())
        .elements()
        .map(element -> ((Any.Int) element).value())
        .toJavaStream()
        .mapToLong(Long::longValue)
        .toArray();
  }

  private static void letFail(FlashInferDevice device, ModuleKey key) {
    LoadedModule loaded = device.module(key);
    loaded
        .runtime()
        .open(device.pack().directory().resolve(loaded.entry().file()))
        .function("fail")
        .invoke();
  }

  @Test
  void aStepIsPlannedOnceAndRunForEachLayer() {
    FlashInferDevice device = whole();
    TritonRun<FlashInferMetadata> run = run(device);
    long[] before = calls(device, FA2);

    try (Workspace.Step step = run.workspace.openStep()) {
      FlashInferMetadata metadata = run.build(step, run.decodes(4, 4, 1, 17, 300, 1, 45));
      for (int layer = 0; layer < 3; layer++) {
        run.forward(metadata);
      }
    }

    long[] after = calls(device, FA2);
    assertThat(after[0] - before[0]).as("plans").isEqualTo(1);
    assertThat(after[1] - before[1]).as("runs").isEqualTo(3);
    assertThat(after[2]).as("stream").isEqualTo(run.device.launch().stream());
  }

  @Test
  void promptsGoToTheKernelsForManyQueriesAndDecodesToThoseForFew() {
    FlashInferDevice device = whole();
    TritonRun<FlashInferMetadata> run = run(device);

    try (Workspace.Step step = run.workspace.openStep()) {
      FlashInferStep built =
          (FlashInferStep)
              run.build(step, run.batch(new int[] {0, 1, 2, 42}, new int[] {300, 17, 40}, 3, 1));

      assertThat(built.launches().stream().map(launch -> launch.key())).containsExactly(FA2, FA3);
      assertThat(built.kernels()).isEqualTo(FA2.label() + ", " + FA3.label());
      assertThat(built.launches().get(0).rows()).isEqualTo(2);
      assertThat(built.launches().get(1).firstRow()).isEqualTo(2);
      assertThat(built.graphKey()).isEqualTo(GraphKey.EAGER);
    }
  }

  private TritonRun<?> lowered(FlashInferDevice device) {
    return keep(
        TritonRun.over(
            FlashInferContract.backend(Kind.LOWERED, device),
            device.context(),
            SHAPE.layer(AttentionMask.CAUSAL.withImages(ImageMask.CLAMP_PAST), 2),
            KvLayouts.NHD,
            16,
            120));
  }

  /** A chunk of 40 queries with an image inside, and a decode. */
  private static CommonAttentionMetadata withImage(TritonRun<?> run) {
    return run.withImage(new int[] {0, 40, 41}, new int[] {300, 299}, 1, 270, 290);
  }

  private <M extends AttentionMetadata> Seq<String> driverCalls(
      TritonRun<M> run, CommonAttentionMetadata batch) {
    try (Workspace.Step step = run.workspace.openStep()) {
      M metadata = run.build(step, batch);
      int before = fake.calls().size();
      run.forward(metadata);
      return fake.calls().drop(before).remove("cuCtxSetCurrent");
    }
  }

  @Test
  void imagesRunBesideTheRestOfTheirStepAndSumsAreConvertedBehindBoth() {
    FlashInferDevice device = whole();
    TritonRun<?> run = lowered(device);

    Seq<String> calls = driverCalls(run, withImage(run));

    assertThat(calls)
        .endsWith(
            "cuEventRecord",
            "cuStreamWaitEvent",
            "cuEventRecord",
            "cuStreamWaitEvent",
            "cuLaunchKernelEx");
    assertThat(calls(device, FA2)[2])
        .as("stream of the decode")
        .isEqualTo(run.device.launch().stream());
    assertThat(calls(device, FA3)[2])
        .as("stream of the image")
        .isNotEqualTo(run.device.launch().stream());
  }

  @Test
  void imagesThatShareScratchWithDecodesRunInOrder() {
    FlashInferDevice device = device(FakeModules.in(packs).with(FA2));
    TritonRun<?> run = lowered(device);

    assertThat(driverCalls(run, withImage(run))).doesNotContain("cuStreamWaitEvent");
    assertThat(calls(device, FA2)[2])
        .as("stream of the image")
        .isEqualTo(run.device.launch().stream());
    assertThat(driverCalls(run, run.withImage(new int[] {0, 40}, new int[] {300}, 1, 270, 290)))
        .as("without decodes")
        .contains("cuStreamWaitEvent");
  }

  @Test
  void forwardsWithImagesAllocateNothing() {
    requireNoAllocation(lowered(whole()));
  }

  private static <M extends AttentionMetadata> void requireNoAllocation(TritonRun<M> run) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    // The stand-in for the kernel of the sums runs in Java.
    AttentionOutput output = new AttentionOutput(run.output.out(), Option.none());
    try (Workspace.Step step = run.workspace.openStep()) {
      M metadata = run.build(step, run.withImage(new int[] {0, 12}, new int[] {24}, 1, 17, 19));
      long least = Long.MAX_VALUE;
      for (int round = 0; round < 60 && least > 0; round++) {
        long before = threads.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < 200; i++) {
          run.impl.forward(run.device.launch(), run.q, run.cache, metadata, output);
        }
        least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
      }
      assertThat(least).as("bytes of 200 forwards once compiled").isZero();
    }
  }

  @Test
  void theDecodeKernelsAreUsedWhereTheyAreAskedFor() {
    FlashInferDevice device = whole();
    TritonRun<FlashInferMetadata> run = run(device, DecodeKernels.CUDA_CORES);

    try (Workspace.Step step = run.workspace.openStep()) {
      FlashInferStep built = (FlashInferStep) run.build(step, run.decodes(4, 4, 1, 17, 300, 1, 45));

      assertThat(built.launches().getFirst().key()).isEqualTo(CORES);
    }
  }

  @Test
  void decodesGoToXqaWhoseStepsNameWhatReturnsLogSumExps() {
    FlashInferDevice device = withXqa();
    TritonRun<FlashInferMetadata> run = run(device);
    long before = calls(device, XQA)[1];

    try (Workspace.Step step = run.workspace.openStep()) {
      FlashInferMetadata built = run.build(step, run.decodes(4, 4, 1, 17, 300, 1, 45));
      run.forwardWithoutLse(built);

      assertThat(keys(built)).containsExactly(XQA);
      assertThat(built.kernels())
          .isEqualTo(XQA.label() + " (for log-sum-exps " + FA2.label() + ")");
      assertThat(calls(device, XQA)[1] - before).isEqualTo(1);
    }
  }

  @Test
  void logSumExpsThatXqaDoesNotReturnComeFromTheOtherKernels() {
    FlashInferDevice device = withXqa();
    TritonRun<FlashInferMetadata> run = run(device);
    long xqa = calls(device, XQA)[1];
    long fa2 = calls(device, FA2)[1];

    try (Workspace.Step step = run.workspace.openStep()) {
      run.forward(run.build(step, run.decodes(4, 4, 1, 17, 300, 1, 45)));
    }

    assertThat(calls(device, XQA)[1] - xqa).isZero();
    assertThat(calls(device, FA2)[1] - fa2).isEqualTo(1);
  }

  @Test
  void runsOfMoreQueriesGoToOtherKernelsBesideXqa() {
    TritonRun<FlashInferMetadata> run = run(withXqa());
    try (Workspace.Step step = run.workspace.openStep()) {
      FlashInferMetadata built =
          run.build(step, run.batch(new int[] {0, 1, 2, 5, 45}, new int[] {30, 17, 9, 40}, 4, 1));

      assertThat(keys(built)).containsExactly(XQA, FA2, FA3);
    }
  }

  @Test
  void decodesWhoseRowsAreApartAreNotForXqa() {
    TritonRun<FlashInferMetadata> run = run(withXqa());
    try (Workspace.Step step = run.workspace.openStep()) {
      FlashInferMetadata built =
          run.build(step, run.batch(new int[] {0, 1, 4, 5}, new int[] {300, 17, 40}, 3, 1));

      assertThat(keys(built)).containsExactly(FA2);
    }
  }

  @Test
  void aRecordedDecodeLeavesTheRowsOfPaddingAlone() {
    TritonRun<FlashInferMetadata> run = run(withXqa());
    run.write(0, 300, 1);
    try (Workspace.Step step = run.workspace.openStep()) {
      FlashInferMetadata metadata = run.build(step, run.decodes(4, 3, 1, 299, 5, 160, -7));
      assertThat(metadata.graphKey().captureSafe()).isTrue();
      assertThat(metadata.graphKey().route()).startsWith(XQA.label());
      run.poison();
      run.forwardWithoutLse(metadata);
      byte[] eager = run.out(4);
      run.poison();

      try (CapturedGraph graph =
          new CudaGraphCapture()
              .capture(run.device.launch(), () -> run.forwardWithoutLse(metadata))) {
        assertThat(run.out(4)).as("output while recorded").containsOnly((byte) 0xFF);
        graph.replay(run.device.launch());
        assertThat(run.out(4)).isEqualTo(eager);
      }
      byte[] padding = Arrays.copyOfRange(eager, eager.length / 4 * 3, eager.length);
      assertThat(padding).as("row of padding").containsOnly((byte) 0xFF);
    }
  }

  @Test
  void recordingLogSumExpsIsRefusedWhereTheirKernelsPlanForOneLength() {
    TritonRun<FlashInferMetadata> run = run(device(FakeModules.in(packs).with(FA3).with(XQA)));
    try (Workspace.Step step = run.workspace.openStep()) {
      FlashInferMetadata metadata = run.build(step, run.decodes(4, 4, 1, 17, 300, 1, 45));
      GraphKey key = metadata.graphKey();
      assertThat(key.captureSafe()).isTrue();
      assertThat(key.route()).doesNotContain(FA3.label());

      assertThatThrownBy(
              () ->
                  new CudaGraphCapture().capture(run.device.launch(), () -> run.forward(metadata)))
          .satisfies(refused(ErrorCode.NOT_CAPTURABLE))
          .hasMessageContaining(FA3.label());
    }
  }

  @Test
  void aCacheWhoseBlocksAreNoMultipleOfAHeadApartIsReadByOtherKernels() {
    FlashInferDevice device = withXqa();
    TritonRun<FlashInferMetadata> run = run(device);
    KvCacheView whole = run.cache;
    KvCacheView apart =
        KvCacheView.wrap(
            whole.memory(),
            whole.spec(),
            whole.device(),
            whole.numBlocks() - 1,
            whole.blockStride() + 32);
    long xqa = calls(device, XQA)[1];
    long fa2 = calls(device, FA2)[1];

    try (Workspace.Step step = run.workspace.openStep()) {
      run.impl.forward(
          run.device.launch(),
          run.q,
          apart,
          run.build(step, run.decodes(2, 2, 1, 17, 30)),
          AttentionOutput.of(run.output.out()));
    }

    assertThat(calls(device, XQA)[1] - xqa).isZero();
    assertThat(calls(device, FA2)[1] - fa2).isEqualTo(1);
  }

  @Test
  void aFailedXqaLeavesNoTraceInItsCounters() {
    FlashInferDevice device = withXqa();
    TritonRun<FlashInferMetadata> run = run(device);
    CommonAttentionMetadata batch = run.decodes(2, 2, 1, 17, 30);
    try (Workspace.Step step = run.workspace.openStep()) {
      FlashInferMetadata metadata = run.build(step, batch);
      letFail(device, XQA);

      assertThatThrownBy(() -> run.forwardWithoutLse(metadata))
          .satisfies(refused(ErrorCode.NATIVE_FAILED));
    }
    MemorySegment counters = run.workspace.memory().asSlice(0, run.workspace.plan().zeroedBytes());
    assertThat(counters.byteSize()).isPositive();
    run.device.stream().fill(counters, (byte) 1);

    try (Workspace.Step step = run.workspace.openStep()) {
      run.forwardWithoutLse(run.build(step, batch));
    }
  }

  @Test
  void xqaIsNotOpenedWhereItsKernelHasNoRoom() {
    FlashInferDevice device = withXqa();
    TritonRun<FlashInferMetadata> run = run(device);
    CommonAttentionMetadata batch = run.decodes(2, 2, 1, 17, 30);
    try (Workspace.Step step = run.workspace.openStep()) {
      try (FullDevice full = new FullDevice(device.context(), 1 << 20)) {
        assertThat(full.taken()).isPositive();
        assertThatThrownBy(() -> run.build(step, batch))
            .satisfies(refused(ErrorCode.DEVICE_MEMORY_EXHAUSTED));
      }
      run.forwardWithoutLse(run.build(step, batch));
    }
  }

  @Test
  void moreDecodesThanTheWorkspaceWasPlannedForAreRefused() {
    TritonRun<FlashInferMetadata> run = run(withXqa());
    int most = 64;
    int[] lengths = new int[most + 1];
    Arrays.fill(lengths, 3);
    try (Workspace.Step step = run.workspace.openStep()) {
      assertThatThrownBy(() -> run.build(step, run.decodes(most + 1, most + 1, 1, lengths)))
          .satisfies(refused(ErrorCode.WORKSPACE_TOO_SMALL));
    }
  }

  @Test
  void whatMayBeReplayedIsNamedByKernelAndPlan() {
    TritonRun<FlashInferMetadata> run = run(whole());
    GraphKey first;
    try (Workspace.Step step = run.workspace.openStep()) {
      first = run.build(step, run.decodes(4, 4, 1, 17, 300, 1, 45)).graphKey();
    }
    try (Workspace.Step step = run.workspace.openStep()) {
      GraphKey padded = run.build(step, run.decodes(4, 3, 1, 299, 5, 160, -7)).graphKey();

      assertThat(first.captureSafe()).isTrue();
      assertThat(first.route()).startsWith(FA2.label());
      assertThat(padded).isEqualTo(first);
    }
    try (Workspace.Step step = run.workspace.openStep()) {
      GraphKey fewer = run.build(step, run.decodes(3, 3, 1, 299, 5, 160)).graphKey();

      assertThat(fewer).isNotEqualTo(first);
    }
  }

  @Test
  void aStepIsNotPlannedWhileTheStreamRecords() {
    TritonRun<FlashInferMetadata> run = run(whole());
    try (Workspace.Step step = run.workspace.openStep()) {
      assertThatThrownBy(
              () ->
                  new CudaGraphCapture()
                      .capture(
                          run.device.launch(), () -> run.build(step, run.decodes(1, 1, 1, 17))))
          .satisfies(refused(ErrorCode.NOT_CAPTURABLE));
    }
  }

  @Test
  void aFailingModuleIsAnExceptionWithItsText() {
    FlashInferDevice device = whole();
    TritonRun<FlashInferMetadata> run = run(device);
    CommonAttentionMetadata batch = run.decodes(2, 2, 1, 17, 30);
    try (Workspace.Step step = run.workspace.openStep()) {
      FlashInferMetadata metadata = run.build(step, batch);
      letFail(device, FA2);

      assertThatThrownBy(() -> run.forward(metadata))
          .satisfies(refused(ErrorCode.NATIVE_FAILED))
          .hasMessageContaining("out of memory");
      run.forward(metadata);
    }
    try (Workspace.Step step = run.workspace.openStep()) {
      letFail(device, FA2);

      assertThatThrownBy(() -> run.build(step, batch))
          .satisfies(refused(ErrorCode.NATIVE_FAILED))
          .hasMessageContaining("out of memory");
      run.forward(run.build(step, batch));
    }
  }

  @Test
  void aModuleIsGivenTheKernelsThatItAsksForOrThereIsAReason() throws IOException {
    FakeModules modules = FakeModules.in(packs).withAsking(FA2);
    FlashInferDevice device = device(modules);
    TritonRun<FlashInferMetadata> run = run(device);
    Path file = modules.directory().resolve(CubinFolder.NAME).resolve("kernels/attention.cubin");
    try (Workspace.Step step = run.workspace.openStep()) {
      FlashInferMetadata metadata = run.build(step, run.decodes(2, 2, 1, 17, 30));

      assertThatThrownBy(() -> run.forward(metadata))
          .satisfies(refused(ErrorCode.NATIVE_FAILED))
          .hasMessageContaining("Failed to load cubin for attention")
          .cause()
          .satisfies(refused(ErrorCode.NATIVE_MISSING))
          .hasMessageContaining("nothing at " + file);

      Files.createDirectories(file.getParent());
      Files.writeString(file, "another");
      assertThatThrownBy(() -> run.forward(metadata)).cause().hasMessageContaining("sha256");

      Files.writeString(file, "kernel");
      run.forward(metadata);
    }
  }

  @Test
  void aKernelOutsideOfItsFolderIsRefused() {
    CubinFolder folder = new CubinFolder(packs.resolve("cubins"));

    assertThatThrownBy(() -> folder.cubin("../secret", "00"))
        .satisfies(refused(ErrorCode.INVALID_PARAMETER));
  }

  @Test
  void aSignatureThatDriftedIsRefusedByName() {
    FlashInferDevice device = device(FakeModules.in(packs).withDrifted(FA2));

    assertThatThrownBy(() -> device.module(FA2))
        .satisfies(refused(ErrorCode.SIGNATURE_MISMATCH))
        .hasMessageContaining("plan");
  }

  @Test
  void aLayerWithoutItsModuleIsNotHere() {
    FlashInferDevice device = device(FakeModules.in(packs).with(CORES));
    FlashInferBackend backend = new FlashInferBackend(FlashInferHost.with(device));
    AttentionRequest request =
        AttentionRequest.of(
            SHAPE.layer(AttentionMask.CAUSAL, 2),
            device.context().device().profile(HashSet.empty()));

    assertThat(backend.missingOnThisHost(request).get().text())
        .contains("no module for flashinfer-fa2-prefill-bf16-d64");
  }

  @Test
  void aLayerOfAnotherTypeOrWithACapNeedsAModuleCompiledForIt() {
    FlashInferDevice device = whole();
    FlashInferBackend backend = new FlashInferBackend(FlashInferHost.with(device));
    Dense plain = SHAPE.layer(AttentionMask.CAUSAL, 2);
    Dense half = Dense.decoder(4, 2, HEAD, DType.FP16, AttentionMask.CAUSAL);

    assertThat(missing(backend, device, plain)).isEmpty();
    assertThat(missing(backend, device, plain.withSoftcap(30)).get())
        .contains("no module for flashinfer-fa2-prefill-bf16-d64-cap");
    assertThat(missing(backend, device, half).get())
        .contains("no module for flashinfer-fa2-prefill-fp16-d64");
  }

  private static Option<String> missing(
      FlashInferBackend backend, FlashInferDevice device, Dense layer) {
    return backend
        .missingOnThisHost(
            AttentionRequest.of(layer, device.context().device().profile(HashSet.empty())))
        .map(InvalidReason::text);
  }

  @Test
  void aWindowIsRunHereOnHopperAndItsKernelsAreNamed() {
    ModuleKey.Prefill windows = new ModuleKey.Prefill(Engine.FA2, DType.BF16, HEAD, true, false);
    FlashInferDevice device = device(FakeModules.in(packs).with(windows));
    FlashInferBackend backend = new FlashInferBackend(FlashInferHost.with(device));
    AttentionRequest request =
        AttentionRequest.of(
            SHAPE.layer(AttentionMask.CAUSAL.withWindow(32), 2),
            device.context().device().profile(HashSet.empty()));

    assertThat(backend.checkCombination(request)).isEmpty();
    assertThat(backend.missingOnThisHost(request)).isEmpty();
    assertThat(backend.variant(request).notes().mkString()).contains(windows.label());
  }

  @Test
  void aCacheThatIsNotAlignedIsRefusedBeforeTheCall() {
    TritonRun<FlashInferMetadata> run = run(whole());
    try (Workspace.Step step = run.workspace.openStep()) {
      FlashInferMetadata metadata = run.build(step, run.decodes(4, 4, 1, 17, 300, 1, 45));
      KvCacheView whole = run.cache;
      int fewer = whole.numBlocks() - 1;
      MemorySegment shifted = whole.memory().asSlice(8);
      KvCacheView address =
          KvCacheView.wrap(shifted, whole.spec(), whole.device(), fewer, whole.blockStride());
      KvCacheView stride =
          KvCacheView.wrap(
              whole.memory(), whole.spec(), whole.device(), fewer, whole.blockStride() + 8);

      for (KvCacheView cache : List.of(address, stride)) {
        assertThatThrownBy(
                () -> run.impl.forward(run.device.launch(), run.q, cache, metadata, run.output))
            .satisfies(refused(ErrorCode.SHAPE_MISMATCH))
            .hasMessageContaining("multiples of 16 bytes");
      }
    }
  }

  @Test
  void tensorsOfAnotherTypeOrShapeAreRefusedBeforeTheCall() {
    TritonRun<FlashInferMetadata> run = run(whole());
    try (Workspace.Step step = run.workspace.openStep()) {
      FlashInferMetadata metadata = run.build(step, run.decodes(4, 4, 1, 17, 300, 1, 45));
      TensorView narrow =
          TensorView.of(
              run.q.data(), DType.FP16, run.q.device(), run.q.size(0), run.q.size(1), HEAD);
      TensorView few = run.q.rows(0, 3);
      AttentionOutput output = new AttentionOutput(run.output.out(), Option.none());

      assertThatThrownBy(
              () -> run.impl.forward(run.device.launch(), narrow, run.cache, metadata, output))
          .satisfies(refused(ErrorCode.DTYPE_MISMATCH));
      assertThatThrownBy(
              () -> run.impl.forward(run.device.launch(), few, run.cache, metadata, output))
          .satisfies(refused(ErrorCode.SHAPE_MISMATCH));
    }
  }

  @Test
  void aStepThatIsOverIsRefused() {
    TritonRun<FlashInferMetadata> run = run(whole());
    FlashInferMetadata metadata;
    try (Workspace.Step step = run.workspace.openStep()) {
      metadata = run.build(step, run.decodes(1, 1, 1, 17));
    }

    assertThatThrownBy(() -> run.forward(metadata)).satisfies(refused(ErrorCode.CLOSED));
  }

  @Test
  void blocksBeyondTheCacheAreRefused() {
    TritonRun<FlashInferMetadata> run = run(whole());
    try (Workspace.Step step = run.workspace.openStep()) {
      FlashInferMetadata metadata = run.build(step, run.decodes(1, 1, 119, 40));

      assertThatThrownBy(() -> run.forward(metadata))
          .satisfies(refused(ErrorCode.BLOCK_OUT_OF_RANGE));
    }
  }

  @Test
  void layersThatNoModuleComputesAreRefused() {
    FlashInferBackend backend = new FlashInferBackend(FlashInferHost.with(whole()));
    Dense sinks = SHAPE.layer(AttentionMask.CAUSAL, 2).withSinks(true);
    KvCacheSpec cache =
        new KvCacheSpec(
            KvLayouts.NHD,
            sinks.kvCacheDtype().resolve(sinks.dtype()),
            16,
            2,
            HEAD,
            HEAD,
            KvScales.ONE);

    assertThatThrownBy(() -> backend.createImpl(sinks, LayerParameters.NONE, cache))
        .satisfies(refused(ErrorCode.UNSUPPORTED))
        .hasMessageContaining("sinks");
    assertThatThrownBy(() -> backend.createBuilder(LayerGroup.of("test", sinks), cache))
        .satisfies(refused(ErrorCode.UNSUPPORTED));
  }

  private static java.util.function.Consumer<Throwable> refused(ErrorCode code) {
    return thrown ->
        assertThat(thrown)
            .isInstanceOfSatisfying(
                BifocalException.class, failure -> assertThat(failure.code()).isEqualTo(code));
  }
}
