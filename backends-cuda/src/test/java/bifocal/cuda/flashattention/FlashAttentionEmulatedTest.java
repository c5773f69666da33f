package bifocal.cuda.flashattention;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.Deployment;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.KernelSettings.FlashAttentionVersion;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvLayouts;
import bifocal.core.device.DeviceProfile;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import bifocal.core.workspace.Workspace;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.fake.FakeCuda;
import bifocal.cuda.flashattention.ForwardKey.Sight;
import bifocal.cuda.pack.CacheFormat;
import bifocal.cuda.pack.KernelPack;
import bifocal.cuda.pack.Specialisation;
import bifocal.cuda.pack.Specialisation.Attention;
import bifocal.cuda.pack.Specialisation.Phase;
import bifocal.cuda.pack.SyntheticPack;
import bifocal.cuda.triton.EmulatedKernels;
import bifocal.cuda.triton.TritonDevice;
import bifocal.cuda.triton.TritonRun;
import io.vavr.collection.HashSet;
import io.vavr.collection.Seq;
import io.vavr.control.Option;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.io.TempDir;

/** The suite over stand-ins for driver and forwards: every byte that Java hands over is used. */
@TestInstance(Lifecycle.PER_CLASS)
class FlashAttentionEmulatedTest implements FlashAttentionSuite {
  private static final int HEAD = 64;
  private static final int PAGE = 16;
  private static final List<ForwardKey> SHAPES =
      List.of(
          new ForwardKey(DType.BF16, HEAD, 2, PAGE, Sight.CAUSAL),
          new ForwardKey(DType.BF16, HEAD, 4, PAGE, Sight.CAUSAL),
          new ForwardKey(DType.FP16, HEAD, 2, PAGE, Sight.CAUSAL));

  private CudaContext context;
  private TritonDevice kernels;
  private EmulatedKernels emulated;
  private FakeCuda fake;
  private @Nullable ForwardDevice device;

  @BeforeAll
  void open(@TempDir Path packs) throws IOException {
    fake = FakeCuda.resetOrSkip();
    fake.devices(1, 9, 0, 8L << 30);
    FakeForwards forwards = FakeForwards.in(packs);
    for (ForwardKey shape : SHAPES) {
      for (Sight sight : Sight.values()) {
        forwards.with(shape.with(sight));
      }
    }
    context = CudaContext.primary(fake.driver(), 0);
    KernelPack pack = KernelPack.open(pack(packs), context.device().capability()).get();
    kernels = TritonDevice.of(context, pack);
    emulated = EmulatedKernels.over(fake, pack);
    device =
        new ForwardDevice(
            kernels, ForwardPack.open(forwards.write(), context.device().capability()).get());
  }

  private static Path pack(Path packs) {
    SyntheticPack pack = SyntheticPack.in(packs);
    for (ForwardKey shape : SHAPES) {
      Attention decode =
          new Attention(
              Phase.DECODE,
              Specialisation.Engine.PORTABLE,
              Specialisation.Variant.GENERAL,
              shape.dtype(),
              CacheFormat.SAME,
              HEAD,
              shape.group(),
              PAGE,
              false,
              false);
      pack.with(decode).with(decode.in(Phase.PREFILL));
    }
    for (DType dtype : List.of(DType.BF16, DType.FP16)) {
      pack.with(new Specialisation.Write(dtype, CacheFormat.SAME, HEAD))
          .with(new Specialisation.Merge(dtype, HEAD));
    }
    return pack.write();
  }

  @AfterAll
  void close() {
    if (device == null) {
      return;
    }
    emulated.close();
    kernels.close();
    context.close();
    emulated.requireFine();
    assertThat(fake.live().toJavaMap()).isEmpty();
  }

  private String missing(int headSize, boolean softcap, Deployment deployment) {
    Dense plain = Dense.decoder(4, 2, headSize, DType.BF16, AttentionMask.CAUSAL);
    DeviceProfile profile = context.device().profile(HashSet.of("fa4"));
    return new FlashAttentionBackend(ForwardHost.with(device()))
        .missingOnThisHost(
            new AttentionRequest(
                softcap ? plain.withSoftcap(50) : plain, profile, Option.some(PAGE), deployment))
        .map(InvalidReason::text)
        .getOrElse("nothing");
  }

  private static Deployment version(int number) {
    return Deployment.PLAIN.withKernels(
        Deployment.PLAIN.kernels().withFlashAttention(new FlashAttentionVersion(number, true)));
  }

  @Test
  void aLayerThatHasAForwardMissesNothingAndAnyOtherIsToldWhat() {
    assertThat(missing(HEAD, false, version(4))).isEqualTo("nothing");
    assertThat(missing(512, false, version(4))).contains("head size 512", "up to 256");
    assertThat(missing(HEAD, true, version(4))).contains("soft cap");
  }

  @Test
  void otherVersionsAreNotHereAndTheUserIsToldHowToAskForThisOne() {
    assertThat(missing(HEAD, false, Deployment.PLAIN))
        .contains("only version 4", "flash_attn_version 4");
    assertThat(missing(HEAD, false, version(2))).contains("FA2");
  }

  @Test
  void imagesRunBesideTheTextOfTheirStepAndTextAlone() {
    TritonRun<?> run = lowered();
    try (run) {
      assertThat(eventCalls(run, run.withImage(new int[] {0, 40}, new int[] {300}, 1, 270, 290)))
          .containsExactly(
              "cuEventRecord", "cuStreamWaitEvent", "cuEventRecord", "cuStreamWaitEvent");
      assertThat(eventCalls(run, run.batch(new int[] {0, 40}, new int[] {300}, 1, 1))).isEmpty();
    }
  }

  private TritonRun<?> lowered() {
    return TritonRun.over(
        FlashAttentionContract.backend(FlashAttentionContract.Kind.LOWERED, device()),
        context,
        Dense.decoder(
            4, 2, HEAD, DType.BF16, AttentionMask.CAUSAL.withImages(ImageMask.CLAMP_PAST)),
        KvLayouts.NHD,
        PAGE,
        120);
  }

  private <M extends AttentionMetadata> Seq<String> eventCalls(
      TritonRun<M> run, CommonAttentionMetadata batch) {
    try (Workspace.Step step = run.workspace.openStep()) {
      M metadata = run.build(step, batch);
      int before = fake.calls().size();
      run.forward(metadata);
      return fake.calls().drop(before).filter(symbol -> symbol.contains("Event"));
    }
  }

  @Override
  public boolean replays() {
    return false;
  }

  @Override
  public ForwardDevice device() {
    return Objects.requireNonNull(device);
  }

  @Override
  public List<ForwardKey> shapes() {
    return SHAPES;
  }

  @Override
  public void cannotRun(String why) {
    throw new AssertionError(why);
  }

  @Override
  public int repetitions() {
    return 2;
  }

  @Override
  public long seed() {
    return 20_261_129;
  }

  @Override
  public int longest() {
    return 330;
  }
}
