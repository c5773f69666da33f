package bifocal.cuda.triton;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendValidator;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.Deployment;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.tensor.DType;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.fake.FakeCuda;
import bifocal.cuda.pack.KernelPack;
import io.vavr.collection.HashSet;
import io.vavr.collection.Seq;
import io.vavr.control.Validation;
import java.nio.file.Path;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is said of a layer before anything runs: simulated, without a device, and with a pack. */
class TritonSelectionTest {
  private static final Dense LAYER = Dense.decoder(4, 2, 32, DType.BF16, AttentionMask.CAUSAL);
  private static final TritonHost NONE =
      TritonHost.without(
          BifocalException.of(ErrorCode.NATIVE_MISSING, "the CUDA driver", "no libcuda", "one"));

  @TempDir Path packs;

  private static AttentionRequest on(boolean simulated, Dense layer) {
    return AttentionRequest.of(
        layer, new DeviceProfile.Cuda(new ComputeCapability(9, 0), HashSet.empty(), simulated));
  }

  private static Validation<Seq<InvalidReason>, BackendValidator.Accepted> validate(
      TritonHost host, AttentionRequest request) {
    return new BackendValidator(BackendValidator.Scope.EXECUTION)
        .validate(new TritonAttnBackend(host), request);
  }

  private static KvCacheSpec cache(Dense layer, int blockSize) {
    return new KvCacheSpec(
        KvLayouts.NHD,
        layer.kvCacheDtype().resolve(layer.dtype()),
        blockSize,
        layer.numKvHeads(),
        layer.headSize(),
        layer.headSizeV(),
        KvScales.ONE);
  }

  private void withPack(Consumer<TritonHost> body) {
    FakeCuda fake = FakeCuda.resetOrSkip();
    TritonEmulatedTest.pack(packs);
    try (CudaContext context = CudaContext.primary(fake.driver(), 0)) {
      KernelPack pack = KernelPack.open(packs, context.device().capability()).get();
      try (TritonDevice device = TritonDevice.of(context, pack)) {
        body.accept(TritonHost.with(device));
      }
    }
  }

  @Test
  void simulatedDeviceNeedsNothing() {
    assertThat(validate(NONE, on(true, LAYER)).isValid()).isTrue();
  }

  @Test
  void probedHostWithoutDeviceIsToldWhatIsMissing() {
    Seq<InvalidReason> reasons = validate(NONE, on(false, LAYER)).getError();

    assertThat(reasons.map(InvalidReason::code)).containsExactly(ReasonCode.NOT_ON_THIS_HOST);
    assertThat(reasons.head().text())
        .isEqualTo("kernels not on this host: the CUDA driver: no libcuda, wanted one");
  }

  @Test
  void runningWithoutDeviceSaysTheSame() {
    LayerGroup group = LayerGroup.of("g", LAYER);
    TritonAttnBackend backend = new TritonAttnBackend(NONE);

    assertThatThrownBy(() -> backend.createBuilder(group, cache(LAYER, 16)))
        .hasMessage("the CUDA driver: no libcuda, wanted one");
    assertThatThrownBy(() -> backend.workspace(group, cache(LAYER, 16), new BatchLimits(1, 1, 1)))
        .hasMessage("the CUDA driver: no libcuda, wanted one");
  }

  @Test
  void layerOfThePackIsAcceptedWithItsBlockSizes() {
    withPack(
        host -> {
          BackendValidator.Accepted accepted = validate(host, on(false, LAYER)).get();
          assertThat(accepted.features().blockSizes()).hasToString("16");
        });
  }

  @Test
  void layerWithoutKernelsIsRefusedWithWhatWouldBuildThem() {
    withPack(
        host -> {
          Dense other = Dense.decoder(8, 1, 128, DType.BF16, AttentionMask.CAUSAL);
          assertThat(validate(host, on(false, other)).getError().head().text())
              .contains("no kernel for prefill (general, portable) bf16")
              .contains("head size 128, group 8")
              .contains("build_packs.py");
          assertThatThrownBy(
                  () ->
                      new TritonAttnBackend(host)
                          .createBuilder(LayerGroup.of("g", other), cache(other, 16)))
              .isInstanceOfSatisfying(
                  BifocalException.class,
                  e -> assertThat(e.code()).isEqualTo(ErrorCode.NATIVE_MISSING));
        });
  }

  @Test
  void whatNoKernelComputesIsRefused() {
    withPack(
        host -> {
          unsupported(host, LAYER.withHeadSizeV(64));
          unsupported(host, LAYER.withType(AttentionType.ENCODER_ONLY));
          unsupported(host, LAYER.withScale(-1));
          unsupported(host, LAYER.withKvCacheDtype(KvCacheDtype.FLOAT32));
          Dense images = LAYER.withMask(AttentionMask.CAUSAL.withImages(ImageMask.OVERRIDE));
          assertThatThrownBy(
                  () ->
                      new TritonCausalBackend(host)
                          .createBuilder(LayerGroup.of("g", images), cache(images, 16)))
              .isInstanceOfSatisfying(
                  BifocalException.class,
                  e -> assertThat(e.code()).isEqualTo(ErrorCode.UNSUPPORTED));
        });
  }

  /** What no builder is told of, so that it has to be refused before. */
  @Test
  void whatNoKernelComputesIsRefusedAtSelection() {
    withPack(
        host -> {
          refused(host, LAYER, deployment(true, false, false), "divide keys by the size of the");
          refused(host, LAYER, deployment(false, true, false), "R-SWA");
          refused(host, LAYER.withAlibi(true), deployment(false, false, true), "square roots");
          refused(host, LAYER.withScale(-1), Deployment.PLAIN, "scale");
        });
  }

  private static Deployment deployment(boolean batchInvariant, boolean rswa, boolean alibiSqrt) {
    return new Deployment(false, 1, 1, false, batchInvariant, false, rswa, false, alibiSqrt);
  }

  private static void refused(TritonHost host, Dense layer, Deployment deployment, String why) {
    AttentionRequest plain = on(false, layer);
    AttentionRequest request =
        new AttentionRequest(layer, plain.device(), plain.blockSize(), deployment);
    assertThat(new TritonAttnBackend(host).missingOnThisHost(request).map(InvalidReason::text))
        .allSatisfy(text -> assertThat(text).contains(why))
        .isNotEmpty();
  }

  private static void unsupported(TritonHost host, Dense layer) {
    assertThatThrownBy(
            () ->
                new TritonAttnBackend(host)
                    .createBuilder(LayerGroup.of("g", layer), cache(layer, 16)))
        .isInstanceOfSatisfying(
            BifocalException.class,
            e -> assertThat(e.code()).as(e.getMessage()).isEqualTo(ErrorCode.UNSUPPORTED));
  }
}
