package bifocal.core.backend;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.BackendValidator.Accepted;
import bifocal.core.backend.BackendValidator.Scope;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import io.vavr.collection.HashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

class BackendValidatorTest {
  private static final DeviceProfile HOPPER = cuda(9, 0, true);
  private static final AttentionLayerSpec.Dense LAYER =
      AttentionLayerSpec.Dense.decoder(8, 2, 64, DType.BF16, AttentionMask.CAUSAL);
  private static final AttentionLayerSpec.Mla LATENT =
      new AttentionLayerSpec.Mla(
          16, 512, 128, 64, 128, DType.BF16, KvCacheDtype.AUTO, AttentionMask.CAUSAL, 1, false);
  private static final Deployment PLAIN = Deployment.PLAIN;
  private static final FeatureSet ON_HOPPER =
      StubBackend.PLAIN.withDevices(
          DeviceSupport.cuda(DeviceSupport.Range.majors(8, 9), DeviceSupport.Range.majors(10, 10)));
  private static final AttentionLayerSpec LAYER_OF_HEAD_80 =
      AttentionLayerSpec.Dense.decoder(8, 2, 80, DType.BF16, AttentionMask.CAUSAL);

  /** Each check of the reference, in its order: a request that breaks it alone, and its words. */
  static Stream<Arguments> referenceChecks() {
    return Stream.of(
        check(LAYER_OF_HEAD_80, PLAIN, "head_size not supported"),
        check(dense(DType.FP32), PLAIN, "dtype not supported"),
        check(LAYER.withKvCacheDtype(KvCacheDtype.FP8), PLAIN, "kv_cache_dtype not supported"),
        Arguments.of(
            new AttentionRequest(LAYER, HOPPER, Option.some(24), PLAIN),
            "block_size not supported"),
        check(
            LAYER,
            PLAIN.withModelSeesImages(true),
            "partial multimodal token full attention not supported"),
        check(LAYER.withSinks(true), PLAIN, "attention sinks not supported"),
        check(
            LAYER,
            new Deployment(false, 1, 1, false, false, false, false, true, false),
            "per-head quant scales not supported"),
        Arguments.of(
            AttentionRequest.of(LAYER, cuda(7, 5, true)), "compute capability not supported"),
        check(
            LAYER.withType(AttentionType.ENCODER_DECODER),
            PLAIN,
            "attention type encoder_decoder not supported"),
        check(
            LAYER.withMask(AttentionMask.CAUSAL.withWindow(128)),
            PLAIN,
            "sliding window not supported"),
        check(
            LAYER,
            new Deployment(false, 1, 1, false, false, false, true, false, false),
            "R-SWA not supported"),
        check(
            LAYER.withMask(AttentionMask.BIDIRECTIONAL),
            PLAIN,
            "non-causal attention not supported"),
        check(
            LAYER,
            new Deployment(false, 1, 1, false, true, false, false, false, false),
            "batch invariance not supported"),
        check(
            LAYER,
            new Deployment(false, 1, 1, true, false, false, false, false, false),
            "KV connector not supported"),
        check(
            LAYER,
            new Deployment(false, 1, 2, false, false, false, false, false, false),
            "PCP not supported"),
        check(
            LAYER,
            new Deployment(false, 2, 1, false, false, false, false, false, false),
            "DCP not supported"),
        check(
            LAYER,
            new Deployment(false, 1, 1, false, false, true, false, false, false),
            "device-cpu query lens mismatch not supported, this is needed for adaptive"
                + " verification"));
  }

  /** What a kernel would leave out in silence. */
  static Stream<Arguments> ownChecks() {
    return Stream.of(
        check(LAYER.withSoftcap(50), PLAIN, "softcap not supported"),
        check(LAYER.withAlibi(true), PLAIN, "ALiBi not supported"),
        check(
            LAYER.withMask(
                new AttentionMask(true, Option.none(), ImageMask.NONE, Option.some(4096))),
            PLAIN,
            "chunked-local attention not supported"),
        check(LAYER.withHeadSizeV(128), PLAIN, "head_size_v not supported"));
  }

  @ParameterizedTest
  @MethodSource({"referenceChecks", "ownChecks"})
  void aPropertyThatIsNotDeclaredIsRefusedInItsOwnWords(AttentionRequest request, String text) {
    assertThat(texts(new StubBackend("PLAIN", ON_HOPPER), request)).containsExactly(text);
  }

  @Test
  void whatIsDeclaredIsAccepted() {
    assertThat(texts(new StubBackend("PLAIN", ON_HOPPER), AttentionRequest.of(LAYER, HOPPER)))
        .isEmpty();
  }

  @Test
  void allReasonsComeInTheOrderOfTheChecks() {
    AttentionLayerSpec layer =
        new AttentionLayerSpec.Dense(
            8,
            2,
            80,
            96,
            DType.FP32,
            KvCacheDtype.FP8,
            AttentionType.DECODER,
            AttentionMask.BIDIRECTIONAL.withWindow(8),
            1,
            Option.some(30.0),
            true,
            true);
    AttentionRequest request =
        new AttentionRequest(
            layer,
            cuda(7, 5, true),
            Option.some(24),
            new Deployment(true, 2, 2, true, true, true, true, true, true));
    assertThat(texts(new StubBackend("PLAIN", ON_HOPPER.withTypes()), request))
        .containsExactly(
            "head_size not supported",
            "dtype not supported",
            "kv_cache_dtype not supported",
            "block_size not supported",
            "partial multimodal token full attention not supported",
            "attention sinks not supported",
            "per-head quant scales not supported",
            "compute capability not supported",
            "attention type decoder not supported",
            "sliding window not supported",
            "R-SWA not supported",
            "non-causal attention not supported",
            "batch invariance not supported",
            "KV connector not supported",
            "PCP not supported",
            "DCP not supported",
            "device-cpu query lens mismatch not supported, this is needed for adaptive"
                + " verification",
            "softcap not supported",
            "ALiBi not supported",
            "ALiBi with the square root of the distance not supported",
            "head_size_v not supported");
  }

  @Test
  void latentAndSparseLayersMeetTheirOwnBackendsOnly() {
    FeatureSet latent = ON_HOPPER.withHeadSizes(HeadSizes.exactly(576)).withFeatures(Feature.MLA);
    FeatureSet sparse =
        ON_HOPPER.withHeadSizes(HeadSizes.exactly(576)).withFeatures(Feature.MLA, Feature.SPARSE);
    AttentionRequest dense = AttentionRequest.of(LAYER, HOPPER);
    AttentionRequest mla = AttentionRequest.of(LATENT, HOPPER);
    AttentionRequest sparseMla =
        AttentionRequest.of(new AttentionLayerSpec.SparseMla(LATENT, 2048), HOPPER);
    assertThat(texts(new StubBackend("LATENT", latent), mla)).isEmpty();
    assertThat(texts(new StubBackend("LATENT", latent), sparseMla))
        .containsExactly("sparse not supported");
    assertThat(texts(new StubBackend("SPARSE", sparse), sparseMla)).isEmpty();
    assertThat(texts(new StubBackend("SPARSE", sparse), mla))
        .containsExactly("non-sparse not supported");
    assertThat(texts(new StubBackend("SPARSE", sparse), dense))
        .containsExactly(
            "head_size not supported", "non-MLA not supported", "non-sparse not supported");
    assertThat(texts(new StubBackend("PLAIN", ON_HOPPER), sparseMla))
        .containsExactly("head_size not supported", "MLA not supported", "sparse not supported");
  }

  @Test
  void nonCausalLatentAttentionWithSharedSequencesIsACheckOfItsOwn() {
    AttentionLayerSpec.Mla nonCausal =
        new AttentionLayerSpec.Mla(
            16,
            512,
            128,
            64,
            128,
            DType.BF16,
            KvCacheDtype.AUTO,
            AttentionMask.BIDIRECTIONAL,
            1,
            false);
    FeatureSet latent =
        ON_HOPPER
            .withHeadSizes(HeadSizes.exactly(576))
            .withFeatures(Feature.MLA, Feature.NON_CAUSAL, Feature.DCP, Feature.LSE);
    assertThat(
            texts(
                new StubBackend("LATENT", latent),
                new AttentionRequest(nonCausal, HOPPER, Option.none(), dcp(2))))
        .containsExactly("non-causal MLA attention with DCP not supported");
  }

  @Test
  void aLayerWithoutACacheIsNotAskedForCacheTypesBlocksAndLayouts() {
    FeatureSet encoder =
        FeatureSet.NONE
            .withDtypes(DType.BF16)
            .withHeadSizes(HeadSizes.exactly(64))
            .withKvCacheDtypes(KvCacheDtype.AUTO)
            .withTypes(AttentionType.ENCODER_ONLY, AttentionType.DECODER)
            .withDevices(ON_HOPPER.devices());
    AttentionLayerSpec.Dense layer =
        LAYER
            .withKvCacheDtype(KvCacheDtype.FP8_E4M3)
            .withType(AttentionType.ENCODER_ONLY)
            .withMask(AttentionMask.BIDIRECTIONAL);
    AttentionRequest request =
        new AttentionRequest(layer, HOPPER, Option.some(48), Deployment.PLAIN);
    assertThat(texts(new StubBackend("X", encoder), request)).isEmpty();
    assertThat(
            texts(
                new StubBackend("X", encoder),
                new AttentionRequest(
                    layer.withType(AttentionType.DECODER).withMask(AttentionMask.CAUSAL),
                    HOPPER,
                    Option.some(48),
                    Deployment.PLAIN)))
        .containsExactly(
            "kv_cache_dtype not supported",
            "block_size not supported",
            "no KV cache layout declared");
  }

  @Test
  void aPinnedPageIsAcceptedWhereWholeKernelBlocksFillIt() {
    FeatureSet exact = ON_HOPPER.withBlockSizes(BlockSizes.exactly(64));
    assertThat(texts(new StubBackend("X", exact), pinned(128))).isEmpty();
    assertThat(texts(new StubBackend("X", exact), pinned(96)))
        .containsExactly("block_size not supported");
    assertThat(texts(new StubBackend("X", ON_HOPPER.withBlockSizes(BlockSizes.NONE)), pinned(64)))
        .containsExactly("block_size not supported");
  }

  @ParameterizedTest
  @CsvSource({
    "OVERRIDE, OVERRIDE, true",
    "OVERRIDE, CLAMP_PAST, false",
    "CLAMP_PAST, CLAMP_BOTH, false",
    "CLAMP_BOTH, CLAMP_BOTH, true",
    "NONE, CLAMP_PAST, true"
  })
  void theLayersOwnImageMaskMustBeDeclared(ImageMask layer, ImageMask declared, boolean valid) {
    StubBackend backend = new StubBackend("X", ON_HOPPER.withImageMasks(declared));
    AttentionRequest request =
        new AttentionRequest(
            LAYER.withMask(AttentionMask.CAUSAL.withImages(layer)),
            HOPPER,
            Option.none(),
            PLAIN.withModelSeesImages(true));
    assertThat(validate(backend, request).isValid()).isEqualTo(valid);
  }

  @Test
  void aReasonSaysWhatWasSeenAndWhatIsWanted() {
    InvalidReason head =
        validate(new StubBackend("X", ON_HOPPER), AttentionRequest.of(LAYER_OF_HEAD_80, HOPPER))
            .getError()
            .head();
    assertThat(head)
        .isEqualTo(
            new InvalidReason(ReasonCode.HEAD_SIZE, "head_size not supported", "80", "64, 128"));
    InvalidReason device =
        validate(new StubBackend("X", ON_HOPPER), AttentionRequest.of(LAYER, cuda(7, 5, true)))
            .getError()
            .head();
    assertThat(device.seen()).isEqualTo("cuda 7.5");
    assertThat(device.wanted()).isEqualTo("cuda 8.x-9.x, 10.x");
  }

  @Test
  void aCombinationIsAskedAboutLastAndItsReasonComesLast() {
    StubBackend backend =
        new StubBackend("X", ON_HOPPER)
            .refusing(r -> Option.some(new InvalidReason(ReasonCode.COMBINATION, "both", "", "")));
    assertThat(texts(backend, AttentionRequest.of(LAYER, HOPPER))).containsExactly("both");
    assertThat(texts(backend, AttentionRequest.of(LAYER.withSoftcap(50), HOPPER)))
        .as("a combination does not read the softcap")
        .containsExactly("softcap not supported", "both");
  }

  @Test
  void aCombinationIsNotAskedAboutWhenAPropertyItReadsWasRefused() {
    AtomicInteger asked = new AtomicInteger();
    StubBackend backend =
        new StubBackend("X", ON_HOPPER)
            .refusing(
                r -> {
                  asked.incrementAndGet();
                  return Option.some(
                      new InvalidReason(ReasonCode.COMBINATION, "sinks need 9.0", "", ""));
                });
    assertThat(texts(backend, AttentionRequest.of(LAYER, cuda(7, 5, true))))
        .containsExactly("compute capability not supported");
    assertThat(asked).hasValue(0);
  }

  @Test
  void theVariantThatServesTheLayerIsAskedNotTheFamily() {
    AttentionBackend<AttentionMetadata> family = new Family();
    AttentionLayerSpec fp8 =
        AttentionLayerSpec.Dense.decoder(8, 2, 256, DType.BF16, AttentionMask.CAUSAL)
            .withKvCacheDtype(KvCacheDtype.FP8);
    assertThat(
            new BackendValidator(Scope.EXECUTION)
                .validate(family, AttentionRequest.of(fp8, HOPPER))
                .getError()
                .map(InvalidReason::text))
        .containsExactly("kv_cache_dtype not supported");
    assertThat(family.capabilities().all().kvCacheDtypes()).contains(KvCacheDtype.FP8);
  }

  @Test
  void extensionsAreAcceptedAndNamedAndTheReferenceAloneRefusesThem() {
    StubBackend backend =
        new StubBackend(
            "X",
            new Capabilities(
                ON_HOPPER, FeatureSet.NONE.withFeatures(Feature.SINK, Feature.SOFTCAP)));
    AttentionRequest plain = AttentionRequest.of(LAYER, HOPPER);
    AttentionRequest sinks = AttentionRequest.of(LAYER.withSinks(true), HOPPER);
    assertThat(validate(backend, plain).get().extension()).isFalse();
    assertThat(validate(backend, sinks).get().extension()).isTrue();
    assertThat(
            new BackendValidator(Scope.REFERENCE)
                .validate(backend, sinks)
                .getError()
                .map(InvalidReason::text))
        .containsExactly("attention sinks not supported");
    assertThat(new BackendValidator(Scope.REFERENCE).validate(backend, plain).isValid()).isTrue();
  }

  @Test
  void kernelsThatAreNotHereAreTheLastReasonOnAProbedHostAndNoneInSimulation() {
    StubBackend backend = new StubBackend("X", ON_HOPPER).missing("kernels not on this host");
    assertThat(texts(backend, AttentionRequest.of(LAYER, HOPPER))).isEmpty();
    assertThat(texts(backend, AttentionRequest.of(LAYER.withSinks(true), cuda(9, 0, false))))
        .containsExactly("attention sinks not supported", "kernels not on this host");
  }

  @ParameterizedTest
  @EnumSource(
      value = Execution.Status.class,
      names = {"NATIVE", "NATIVE_WITH_PACK"})
  void ranksThatShareASequenceNeedTheNaturalLogSumExpOfKernelsThatRunHere(Execution.Status status) {
    AttentionRequest request = new AttentionRequest(LAYER, HOPPER, Option.none(), dcp(2));
    StubBackend none = new StubBackend("X", ON_HOPPER.withFeatures(Feature.DCP)).executedBy(status);
    StubBackend base2 =
        new StubBackend("X", ON_HOPPER.withFeatures(Feature.DCP, Feature.LSE_BASE_2))
            .executedBy(status);
    StubBackend natural =
        new StubBackend("X", ON_HOPPER.withFeatures(Feature.DCP, Feature.LSE)).executedBy(status);
    assertThat(validate(none, request).getError().map(InvalidReason::code))
        .containsExactly(ReasonCode.LSE);
    assertThat(validate(base2, request).getError().head().seen()).isEqualTo("base 2");
    assertThat(validate(natural, request).isValid()).isTrue();
  }

  @Test
  void aHeadSizeIsServedByATableEntryOrRefused() {
    FeatureSet tiles = ON_HOPPER.withHeadSizes(HeadSizes.multiplesOf(32, 32, 512));
    FeatureSet wide = ON_HOPPER.withHeadSizes(HeadSizes.multiplesOf(16, 16, 512));
    for (int head : new int[] {256, 512}) {
      assertThat(texts(new StubBackend("TILES", tiles), headOf(head))).isEmpty();
    }
    for (int head : new int[] {80, 112, 48}) {
      assertThat(texts(new StubBackend("TILES", tiles), headOf(head)))
          .containsExactly("head_size not supported");
      assertThat(texts(new StubBackend("WIDE", wide), headOf(head))).isEmpty();
    }
    assertThat(texts(new StubBackend("WIDE", wide), headOf(33)))
        .containsExactly("head_size not supported");
  }

  /** Version 4 has an fp8 cache and heads up to 128; larger heads resolve to version 2. */
  private static final class Family implements AttentionBackend<AttentionMetadata> {
    private static final FeatureSet V2 = ON_HOPPER.withHeadSizes(HeadSizes.ANY);
    private static final FeatureSet V4 =
        ON_HOPPER
            .withHeadSizes(HeadSizes.multiplesOf(8, 8, 128))
            .withKvCacheDtypes(KvCacheDtype.AUTO, KvCacheDtype.FP8);

    @Override
    public BackendName name() {
      return new BackendName("FAMILY");
    }

    @Override
    public Capabilities capabilities() {
      return Capabilities.of(V2.union(V4));
    }

    @Override
    public Capabilities capabilities(AttentionRequest request) {
      return Capabilities.of(request.layer().headSize() <= 128 ? V4 : V2);
    }

    @Override
    public AttentionMetadataBuilder<AttentionMetadata> createBuilder(
        LayerGroup group, KvCacheSpec cache) {
      throw new AssertionError("nothing is built");
    }

    @Override
    public AttentionImpl<AttentionMetadata> createImpl(
        AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
      throw new AssertionError("nothing is run");
    }
  }

  private static AttentionRequest headOf(int size) {
    return AttentionRequest.of(
        AttentionLayerSpec.Dense.decoder(8, 2, size, DType.BF16, AttentionMask.CAUSAL), HOPPER);
  }

  private static AttentionLayerSpec dense(DType dtype) {
    return AttentionLayerSpec.Dense.decoder(8, 2, 64, dtype, AttentionMask.CAUSAL);
  }

  private static Deployment dcp(int ranks) {
    return new Deployment(false, ranks, 1, false, false, false, false, false, false);
  }

  private static AttentionRequest pinned(int blockSize) {
    return new AttentionRequest(LAYER, HOPPER, Option.some(blockSize), PLAIN);
  }

  private static DeviceProfile cuda(int major, int minor, boolean simulated) {
    return new DeviceProfile.Cuda(new ComputeCapability(major, minor), HashSet.empty(), simulated);
  }

  private static Arguments check(AttentionLayerSpec layer, Deployment deployment, String text) {
    return Arguments.of(new AttentionRequest(layer, HOPPER, Option.none(), deployment), text);
  }

  private static Validation<Seq<InvalidReason>, Accepted> validate(
      AttentionBackend<?> backend, AttentionRequest request) {
    return new BackendValidator(Scope.EXECUTION).validate(backend, request);
  }

  private static Seq<String> texts(AttentionBackend<?> backend, AttentionRequest request) {
    return validate(backend, request)
        .fold(reasons -> reasons.map(InvalidReason::text), accepted -> Vector.empty());
  }
}
