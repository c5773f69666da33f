package bifocal.composite;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.composite.SummingBackend.Journal;
import bifocal.composite.SummingBackend.Metadata;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.BackendValidator;
import bifocal.core.backend.Deployment;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.DeviceSupport.Range;
import bifocal.core.backend.Execution;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.KvContract;
import bifocal.core.backend.ReasonCode;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvLayout;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.Platform;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.route.Child;
import bifocal.core.route.RoutingPolicy;
import bifocal.core.tensor.DType;
import io.vavr.collection.HashSet;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/** What a composite claims: what both children can do, property by property. */
class CompositeCapabilitiesTest {
  private static final FeatureSet PLAIN = SummingBackend.PLAIN;
  private static final DeviceProfile HOPPER =
      new DeviceProfile.Cuda(new ComputeCapability(9, 0), HashSet.empty(), true);

  private final Journal journal = new Journal();
  private final SummingBackend general = new SummingBackend("GENERAL", journal);
  private final SummingBackend fast = new SummingBackend("FAST", journal);

  private AttentionBackend<CompositeMetadata<Metadata, Metadata>> composite(
      RoutingPolicy policy, CompositeLimits limits) {
    return CompositeBackends.createCompositeBackendOrThrow(
        new BackendName("PAIR"), general, fast, policy, limits);
  }

  private FeatureSet all(FeatureSet a, FeatureSet b) {
    general.with(a);
    fast.with(b);
    return composite(FakePolicy.imagesToA(), CompositeLimits.NONE).capabilities().all();
  }

  /** C10: a pinned size that no block of both fills is refused with the sizes of each child. */
  @Test
  void aPinnedBlockSizeIsRefusedWithTheSizesOfBothChildren() {
    general.with(PLAIN.withBlockSizes(BlockSizes.multiplesOf(16)));
    fast.with(PLAIN.withBlockSizes(BlockSizes.exactly(64)));
    AttentionRequest pinned =
        new AttentionRequest(TestHost.LAYER, HOPPER, Option.some(48), Deployment.PLAIN);

    InvalidReason reason =
        new BackendValidator(BackendValidator.Scope.EXECUTION)
            .validate(composite(FakePolicy.imagesToA(), CompositeLimits.NONE), pinned)
            .getError()
            .head();

    assertThat(reason.text()).isEqualTo("block_size not supported");
    assertThat(reason.seen()).isEqualTo("48");
    assertThat(reason.wanted()).isEqualTo("GENERAL: %16; FAST: 64");
  }

  @Test
  void setsAreIntersectedInTheGeneralChildsOrder() {
    FeatureSet shared =
        all(
            PLAIN
                .withDtypes(DType.BF16, DType.FP16, DType.FP32)
                .withHeadSizes(HeadSizes.multiplesOf(16, 16, 256))
                .withBlockSizes(BlockSizes.exactly(64, 32, 16))
                .withKvLayouts(KvLayouts.HND, KvLayouts.NHD),
            PLAIN
                .withDtypes(DType.FP32, DType.BF16)
                .withHeadSizes(HeadSizes.exactly(64, 80, 100))
                .withBlockSizes(BlockSizes.multiplesOf(32))
                .withKvLayouts(KvLayouts.NHD, KvLayouts.HND));

    assertThat(shared.dtypes()).containsExactly(DType.BF16, DType.FP32);
    assertThat(shared.headSizes()).isEqualTo(HeadSizes.exactly(64, 80));
    assertThat(shared.blockSizes()).isEqualTo(BlockSizes.exactly(64, 32));
    assertThat(shared.kvLayouts().map(KvLayout::name)).containsExactly("HND", "NHD");
  }

  /** C10: sets of block sizes that meet, and the kernel block of a page of 256 tokens. */
  @Test
  void kernelBlocksAreWhatBothRun() {
    BlockSizes some =
        all(
                PLAIN.withBlockSizes(BlockSizes.multiplesOf(16)),
                PLAIN.withBlockSizes(BlockSizes.exactly(16, 32)))
            .blockSizes();
    BlockSizes multiples =
        all(
                PLAIN.withBlockSizes(BlockSizes.multiplesOf(16)),
                PLAIN.withBlockSizes(BlockSizes.multiplesOf(24)))
            .blockSizes();

    assertThat(some.kernelBlockFor(256)).contains(32);
    assertThat(some.accepts(48)).isFalse();
    assertThat(multiples).isEqualTo(BlockSizes.multiplesOf(48));
  }

  @Test
  void onlyThoseWhoCarryImagesAreAskedForThem() {
    general.with(PLAIN.withImageMasks(ImageMask.OVERRIDE, ImageMask.CLAMP_PAST));
    fast.with(PLAIN.withImageMasks(ImageMask.CLAMP_PAST));

    assertThat(masks(FakePolicy.imagesToA()))
        .containsExactly(ImageMask.OVERRIDE, ImageMask.CLAMP_PAST);
    assertThat(masks(FakePolicy.always(Child.A))).containsExactly(ImageMask.CLAMP_PAST);
  }

  private Iterable<ImageMask> masks(RoutingPolicy policy) {
    return composite(policy, CompositeLimits.NONE).capabilities().all().imageMasks();
  }

  @Test
  void automaticCacheTypesAreResolvedBeforeTheyAreCompared() {
    general.with(PLAIN.withDtypes(DType.BF16).withKvCacheDtypes(KvCacheDtype.AUTO));
    fast.with(PLAIN.withDtypes(DType.BF16).withKvCacheDtypes(KvCacheDtype.BFLOAT16));

    assertThat(cacheTypes()).containsExactlyInAnyOrder(KvCacheDtype.AUTO, KvCacheDtype.BFLOAT16);
  }

  @Test
  void anAutomaticTypeIsSharedOnlyForModelsForWhichItIsTheSameCache() {
    general.with(PLAIN.withKvCacheDtypes(KvCacheDtype.AUTO, KvCacheDtype.FP8));
    fast.with(PLAIN.withKvCacheDtypes(KvCacheDtype.BFLOAT16, KvCacheDtype.FP8_E4M3));

    assertThat(cacheTypes(DType.BF16))
        .containsExactlyInAnyOrder(
            KvCacheDtype.AUTO, KvCacheDtype.BFLOAT16, KvCacheDtype.FP8, KvCacheDtype.FP8_E4M3);
    assertThat(cacheTypes(DType.FP32))
        .containsExactlyInAnyOrder(KvCacheDtype.FP8, KvCacheDtype.FP8_E4M3);
    assertThat(cacheTypes()).containsExactlyInAnyOrderElementsOf(cacheTypes(DType.BF16));
  }

  private Iterable<KvCacheDtype> cacheTypes(DType model) {
    return composite(FakePolicy.imagesToA(), CompositeLimits.NONE)
        .capabilities(request(2, model))
        .all()
        .kvCacheDtypes();
  }

  private Iterable<KvCacheDtype> cacheTypes() {
    return composite(FakePolicy.imagesToA(), CompositeLimits.NONE)
        .capabilities()
        .all()
        .kvCacheDtypes();
  }

  private static AttentionRequest request(int heads, DType dtype) {
    return AttentionRequest.of(
        AttentionLayerSpec.Dense.decoder(
            heads, 1, TestHost.HEAD_SIZE, dtype, TestHost.LAYER.mask()),
        HOPPER);
  }

  @Test
  void devicesMeetPlatformByPlatform() {
    DeviceSupport shared =
        all(
                PLAIN.withDevices(
                    new DeviceSupport(
                        HashSet.of(Platform.CPU, Platform.CUDA), Vector.of(Range.from(8, 0)))),
                PLAIN.withDevices(
                    new DeviceSupport(
                        HashSet.of(Platform.CUDA, Platform.ROCM),
                        Vector.of(Range.majors(9, 9), Range.exactly(7, 5), Range.majors(12, 12)))))
            .devices();

    assertThat(shared.platforms()).containsExactly(Platform.CUDA);
    assertThat(shared.capabilities()).containsExactly(Range.majors(9, 9), Range.majors(12, 12));
  }

  @Test
  void aPlatformWithoutASharedComputeCapabilityIsDropped() {
    DeviceSupport shared =
        all(
                PLAIN.withDevices(
                    new DeviceSupport(
                        HashSet.of(Platform.CPU, Platform.CUDA), Vector.of(Range.majors(9, 9)))),
                PLAIN.withDevices(
                    new DeviceSupport(
                        HashSet.of(Platform.CPU, Platform.CUDA), Vector.of(Range.majors(10, 10)))))
            .devices();

    assertThat(shared.platforms()).containsExactly(Platform.CPU);
    assertThat(shared.accepts(HOPPER)).isFalse();
  }

  @Test
  void whatTheReferenceSwitchesOffInCompositesIsAnExtension() {
    general.with(PLAIN.withFeatures(Feature.SINK, Feature.DCP, Feature.SLIDING_WINDOW));
    fast.with(PLAIN.withFeatures(Feature.SINK, Feature.DCP, Feature.SLIDING_WINDOW));
    var capabilities = composite(FakePolicy.imagesToA(), CompositeLimits.NONE).capabilities();

    assertThat(capabilities.reference().features()).containsExactly(Feature.SLIDING_WINDOW);
    assertThat(capabilities.extensions().features())
        .containsExactlyInAnyOrder(Feature.SINK, Feature.DCP);
    assertThat(capabilities.extensions().dtypes()).isEmpty();
    assertThat(capabilities.extensions().devices().platforms()).isEmpty();
  }

  @Test
  void whatOneChildOnlyHasAsAnExtensionIsAnExtension() {
    general.with(
        PLAIN.withHeadSizes(HeadSizes.exactly(64)).withDevices(DeviceSupport.on(Platform.CUDA)),
        FeatureSet.NONE
            .withHeadSizes(HeadSizes.exactly(80))
            .withDevices(DeviceSupport.on(Platform.CPU)));
    fast.with(PLAIN);
    var capabilities = composite(FakePolicy.imagesToA(), CompositeLimits.NONE).capabilities();

    assertThat(capabilities.reference().headSizes()).isEqualTo(HeadSizes.exactly(64));
    assertThat(capabilities.all().headSizes()).isEqualTo(HeadSizes.exactly(64, 80));
    assertThat(capabilities.reference().devices().platforms()).containsExactly(Platform.CUDA);
    assertThat(capabilities.all().devices().platforms())
        .containsExactlyInAnyOrder(Platform.CPU, Platform.CUDA);
  }

  @Test
  void latentCompositesAreWhollyAnExtension() {
    general.withMoreFeatures(Feature.MLA);
    fast.withMoreFeatures(Feature.MLA);
    var capabilities = composite(FakePolicy.imagesToA(), CompositeLimits.NONE).capabilities();

    assertThat(capabilities.reference()).isEqualTo(FeatureSet.NONE);
    assertThat(capabilities.all().has(Feature.MLA)).isTrue();
  }

  @Test
  void limitsBoundBothParts() {
    general.with(PLAIN, FeatureSet.NONE.withHeadSizes(HeadSizes.exactly(512)));
    fast.with(PLAIN, FeatureSet.NONE.withHeadSizes(HeadSizes.exactly(512)));
    var capabilities =
        composite(
                FakePolicy.imagesToA(),
                CompositeLimits.NONE
                    .headSizes(256)
                    .onlyOn(DeviceSupport.cuda(Range.majors(10, 10))))
            .capabilities();

    assertThat(capabilities.all().headSizes()).isEqualTo(HeadSizes.exactly(256));
    assertThat(capabilities.all().devices().accepts(HOPPER)).isFalse();
  }

  @Test
  void attentionWithoutACacheNeedsAPolicyThatNeverDivides() {
    FeatureSet encoders = PLAIN.withTypes(AttentionType.DECODER, AttentionType.ENCODER_ONLY);
    general.with(encoders);
    fast.with(encoders);

    assertThat(types(FakePolicy.always(Child.A)))
        .containsExactlyInAnyOrder(AttentionType.DECODER, AttentionType.ENCODER_ONLY);
    assertThat(types(FakePolicy.byRequest(r -> Child.A))).containsExactly(AttentionType.DECODER);
  }

  private Iterable<AttentionType> types(RoutingPolicy policy) {
    return composite(policy, CompositeLimits.NONE).capabilities().all().types();
  }

  /** A child that cannot apply scales refuses others than 1, for the composite as well. */
  @Test
  void scalesNeedBothChildren() {
    FeatureSet scaled = PLAIN.withFeatures(Feature.KV_SCALES);
    KvScales half = new KvScales.PerTensor(0.5f, 1f);

    assertThat(scaleReasons(scaled, scaled, half)).isEmpty();
    assertThat(scaleReasons(PLAIN, PLAIN, KvScales.ONE)).isEmpty();
    assertThat(scaleReasons(scaled, PLAIN, half)).containsOnly(ReasonCode.KV_SCALES);
    assertThat(scaleReasons(PLAIN, scaled, half)).containsOnly(ReasonCode.KV_SCALES);
    assertThat(scaleReasons(scaled, scaled, perHead())).containsOnly(ReasonCode.KV_SCALES);
  }

  private static KvScales perHead() {
    float[] scales = new float[TestHost.LAYER.numKvHeads()];
    Arrays.fill(scales, 0.5f);
    return new KvScales.PerHead(scales, scales);
  }

  private Iterable<ReasonCode> scaleReasons(FeatureSet a, FeatureSet b, KvScales scales) {
    general.with(a);
    fast.with(b);
    AttentionRequest request = AttentionRequest.of(TestHost.LAYER, HOPPER);
    AttentionBackend<?> composite = composite(FakePolicy.imagesToA(), CompositeLimits.NONE);
    return KvContract.resolve(
            KvContract.Party.writer(composite, request),
            Vector.of(KvContract.Party.reader(composite, request)),
            TestHost.LAYER,
            scales,
            Option.none())
        .fold(reasons -> reasons.map(InvalidReason::code), spec -> Vector.<ReasonCode>empty());
  }

  /** C19: keys that one child does not give log-sum-exps for, or gives them in another base. */
  @Test
  void theLogSumExpIsOnlyClaimedInABaseThatBothGive() {
    FeatureSet none = all(PLAIN.withFeatures(), PLAIN.withFeatures(Feature.LSE));
    FeatureSet mixed = all(PLAIN.withFeatures(Feature.LSE_BASE_2), PLAIN.withFeatures(Feature.LSE));
    FeatureSet both = all(PLAIN.withFeatures(Feature.LSE), PLAIN.withFeatures(Feature.LSE));

    assertThat(none.has(Feature.LSE)).isFalse();
    assertThat(mixed.has(Feature.LSE) || mixed.has(Feature.LSE_BASE_2)).isFalse();
    assertThat(both.has(Feature.LSE)).isTrue();
  }

  /** C19: the child that gives none, or one in another base, is named when layers are refused. */
  @Test
  void theChildWithoutALogSumExpIsNamed() {
    fast.with(PLAIN.withFeatures(Feature.DCP, Feature.LSE));
    general.with(PLAIN.withFeatures(Feature.DCP));
    assertThat(refusal())
        .containsExactly(
            "GENERAL: log-sum-exp not returned, which decode context parallelism merges by: none");

    general.with(PLAIN.withFeatures(Feature.DCP, Feature.LSE_BASE_2));
    assertThat(refusal())
        .containsExactly(
            "GENERAL: log-sum-exp not returned, which decode context parallelism merges by:"
                + " base 2");

    general.with(PLAIN.withFeatures(Feature.DCP, Feature.LSE));
    assertThat(refusal()).isEmpty();
  }

  /** Reasons against two ranks that share each sequence, with what was seen. */
  private Iterable<String> refusal() {
    AttentionRequest request =
        new AttentionRequest(
            TestHost.LAYER, HOPPER, Option.none(), Deployment.PLAIN.withDecodeContextParallel(2));
    return new BackendValidator(BackendValidator.Scope.EXECUTION)
        .validate(composite(FakePolicy.imagesToA(), CompositeLimits.NONE), request)
        .fold(
            reasons -> reasons.map(reason -> reason.text() + ": " + reason.seen()),
            accepted -> Vector.empty());
  }

  @Test
  void aCompositeMayKeepToTheReference() {
    general.with(PLAIN.withFeatures(Feature.SINK, Feature.SLIDING_WINDOW));
    fast.with(PLAIN.withFeatures(Feature.SINK, Feature.SLIDING_WINDOW));
    var capabilities =
        composite(FakePolicy.imagesToA(), CompositeLimits.NONE.asTheReference()).capabilities();

    assertThat(capabilities.extensions()).isEqualTo(FeatureSet.NONE);
    assertThat(capabilities.all().features()).containsExactly(Feature.SLIDING_WINDOW);
  }

  @Test
  void aRuleOfThePairIsAskedOfTheFastChildAfterTheChildrensOwn() {
    var composite =
        composite(
            FakePolicy.imagesToA(),
            CompositeLimits.NONE.provided(
                (child, asked) ->
                    Option.when(
                        asked.layer().headSize() == TestHost.HEAD_SIZE,
                        () -> reason("another version of " + child.name() + " is needed"))));
    AttentionRequest request = request(2, DType.FP32);

    assertThat(composite.checkCombination(request).map(InvalidReason::text))
        .contains("FAST: another version of FAST is needed");

    general.withCombination(reason("no such head"));
    assertThat(composite.checkCombination(request).map(InvalidReason::text))
        .contains("GENERAL: no such head");
  }

  @Test
  void eachChildIsAskedForTheVariantThatServesItsOwnRequest() {
    var composite = composite(FakePolicy.imagesToA(), CompositeLimits.NONE);
    AttentionRequest request =
        new AttentionRequest(
            TestHost.LAYER, HOPPER, Option.some(16), Deployment.PLAIN.withModelSeesImages(true));
    journal.requests.clear();

    composite.capabilities(request);

    assertThat(journal.requests.get(0)).isEqualTo(request);
    assertThat(journal.requests.get(1).mmPrefix()).isFalse();
    assertThat(journal.requests.get(1).blockSize()).contains(16);
    assertThat(journal.requests.get(1).layer().headSize()).isEqualTo(TestHost.HEAD_SIZE);
  }

  @Test
  void combinationsAreCheckedChildByChildUnderTheChildsName() {
    AttentionRequest request = request(2, DType.FP32);
    var composite = composite(FakePolicy.imagesToA(), CompositeLimits.NONE);
    assertThat(composite.checkCombination(request)).isEmpty();

    fast.withCombination(reason("sink not supported on compute capability < 9.0"));
    assertThat(composite.checkCombination(request).map(InvalidReason::text))
        .contains("FAST: sink not supported on compute capability < 9.0");
    assertThat(journal.requests.getLast().mmPrefix()).isFalse();

    general.withCombination(reason("no such head"));
    assertThat(composite.checkCombination(request).map(InvalidReason::text))
        .contains("GENERAL: no such head");
  }

  @Test
  void kernelsThatAreMissingAreToldByTheChildThatMissesThem() {
    fast.withMissing(reason("no driver"));

    assertThat(
            composite(FakePolicy.imagesToA(), CompositeLimits.NONE)
                .missingOnThisHost(request(2, DType.FP32))
                .map(InvalidReason::text))
        .contains("FAST: no driver");
  }

  private static InvalidReason reason(String text) {
    return new InvalidReason(ReasonCode.COMBINATION, text, "", "");
  }

  @Test
  void executionIsThatOfTheWeakerChild() {
    var composite = composite(FakePolicy.imagesToA(), CompositeLimits.NONE);
    assertThat(composite.execution()).isEqualTo(Execution.NATIVE);

    fast.withExecution(new Execution(Execution.Status.NATIVE_WITH_PACK, "pack: sm90"));
    assertThat(composite.execution())
        .isEqualTo(new Execution(Execution.Status.NATIVE_WITH_PACK, "FAST: pack: sm90"));

    general.withExecution(new Execution(Execution.Status.NOT_HERE, "no toolchain"));
    assertThat(composite.execution().status()).isEqualTo(Execution.Status.NOT_HERE);
    assertThat(composite.execution().reason()).isEqualTo("GENERAL: no toolchain");
  }
}
