package bifocal.composite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.composite.SummingBackend.Journal;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.DeviceSupport.Range;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvLayouts;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionType;
import bifocal.core.route.Child;
import bifocal.core.route.RoutingPolicy;
import bifocal.core.tensor.DType;
import bifocal.routing.Lowering;
import bifocal.routing.MMPrefixAttentionRouting;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import org.junit.jupiter.api.Test;

/** Which pairs are refused, and why. */
class CompositionRulesTest {
  private static final FeatureSet PLAIN = SummingBackend.PLAIN;
  private static final RoutingPolicy POLICY = FakePolicy.imagesToA();

  private static SummingBackend backend(String name, FeatureSet features) {
    return new SummingBackend(name, new Journal()).with(features);
  }

  private static Seq<InvalidReason> reasons(FeatureSet a, FeatureSet b, RoutingPolicy policy) {
    var composite =
        CompositeBackends.createCompositeBackend(backend("ONE", a), backend("TWO", b), policy);
    return composite.isValid() ? Vector.empty() : composite.getError();
  }

  private static void refused(ReasonCode code, String seen, FeatureSet a, FeatureSet b) {
    assertThat(reasons(a, b, POLICY))
        .singleElement()
        .satisfies(
            reason -> {
              assertThat(reason.code()).isEqualTo(code);
              assertThat(reason.seen()).isEqualTo(seen);
              assertThat(reason.wanted()).isNotBlank();
            });
  }

  @Test
  void twoPlainBackendsCanBeComposed() {
    assertThat(reasons(PLAIN, PLAIN, POLICY)).isEmpty();
  }

  @Test
  void withoutASharedPlatform() {
    refused(
        ReasonCode.DEVICE,
        "ONE: CPU | TWO: CUDA",
        PLAIN.withDevices(DeviceSupport.on(Platform.CPU)),
        PLAIN.withDevices(DeviceSupport.on(Platform.CUDA)));
  }

  @Test
  void withoutASharedComputeCapability() {
    refused(
        ReasonCode.DEVICE,
        "ONE: CUDA | TWO: CUDA",
        PLAIN.withDevices(DeviceSupport.cuda(Range.majors(8, 9))),
        PLAIN.withDevices(DeviceSupport.cuda(Range.majors(10, 10))));
  }

  @Test
  void withoutASharedDtype() {
    refused(
        ReasonCode.DTYPE,
        "ONE: fp32 | TWO: bf16",
        PLAIN.withDtypes(DType.FP32),
        PLAIN.withDtypes(DType.BF16));
  }

  @Test
  void withoutASharedAttentionType() {
    refused(
        ReasonCode.ATTENTION_TYPE,
        "ONE: decoder | TWO: encoder_decoder",
        PLAIN.withTypes(AttentionType.DECODER),
        PLAIN.withTypes(AttentionType.ENCODER_DECODER));
  }

  @Test
  void withoutASharedHeadSize() {
    refused(
        ReasonCode.HEAD_SIZE,
        "ONE: 64, 80 | TWO: %32 in 96..256",
        PLAIN.withHeadSizes(HeadSizes.exactly(64, 80)),
        PLAIN.withHeadSizes(HeadSizes.multiplesOf(32, 96, 256)));
  }

  @Test
  void withoutASharedKvCacheDtype() {
    refused(
        ReasonCode.KV_CACHE_DTYPE,
        "ONE: fp8_e5m2 | TWO: fp8_e4m3",
        PLAIN.withKvCacheDtypes(KvCacheDtype.FP8_E5M2),
        PLAIN.withKvCacheDtypes(KvCacheDtype.FP8_E4M3));
  }

  @Test
  void withoutASharedKvLayout() {
    refused(
        ReasonCode.KV_LAYOUT,
        "ONE: NHD | TWO: HND",
        PLAIN.withKvLayouts(KvLayouts.NHD),
        PLAIN.withKvLayouts(KvLayouts.HND));
  }

  @Test
  void withoutASharedKernelBlockSize() {
    refused(
        ReasonCode.BLOCK_SIZE,
        "ONE: 16 | TWO: %32",
        PLAIN.withBlockSizes(BlockSizes.exactly(16)),
        PLAIN.withBlockSizes(BlockSizes.multiplesOf(32)));
  }

  @Test
  void aChildThatDeclaresNoBlockSizeSupportsNone() {
    refused(
        ReasonCode.BLOCK_SIZE,
        "ONE: none | TWO: %1",
        PLAIN.withBlockSizes(BlockSizes.NONE),
        PLAIN.withBlockSizes(BlockSizes.ANY));
  }

  @Test
  void aChildThatWritesTheCacheInsideForward() {
    FeatureSet writing = PLAIN.withFeatures(Feature.KV_WRITE_IN_FORWARD);

    refused(ReasonCode.COMPOSITION, "ONE", writing, PLAIN);
    refused(ReasonCode.COMPOSITION, "TWO", PLAIN, writing);
  }

  @Test
  void latentWithOrdinaryAttention() {
    refused(ReasonCode.MLA, "TWO", PLAIN, PLAIN.withFeatures(Feature.MLA));
  }

  @Test
  void twoLatentChildrenCanBeComposed() {
    FeatureSet latent = PLAIN.withFeatures(Feature.MLA);

    assertThat(reasons(latent, latent, POLICY)).isEmpty();
  }

  @Test
  void chosenWithAllKeys() {
    refused(ReasonCode.SPARSE, "ONE", PLAIN.withFeatures(Feature.SPARSE), PLAIN);
  }

  @Test
  void loweringNeedsNonCausalRunsOfTheFastChildOnly() {
    RoutingPolicy lowering = new MMPrefixAttentionRouting().withLowering(Lowering.LEFT_WINDOW);
    FeatureSet without = PLAIN.withFeatures();

    assertThat(reasons(without, PLAIN, lowering)).isEmpty();
    assertThat(reasons(PLAIN, without, lowering))
        .singleElement()
        .extracting(InvalidReason::code)
        .isEqualTo(ReasonCode.NON_CAUSAL);
    assertThat(reasons(PLAIN, without, new MMPrefixAttentionRouting())).isEmpty();
  }

  @Test
  void loweringWithTwoWindowsNeedsBothOfThem() {
    RoutingPolicy lowering = new MMPrefixAttentionRouting().withLowering(Lowering.BOTH_WINDOWS);

    assertThat(reasons(PLAIN, PLAIN, lowering))
        .singleElement()
        .extracting(InvalidReason::text)
        .asString()
        .contains("two different windows");
    assertThat(
            reasons(
                PLAIN,
                PLAIN.withFeatures(Feature.NON_CAUSAL_LEFT_WINDOW, Feature.RIGHT_WINDOW),
                lowering))
        .isEmpty();
  }

  @Test
  void aPolicyCannotHandTheFastChildImagesBothWays() {
    RoutingPolicy both = FakePolicy.always(Child.B).lowering();

    assertThat(reasons(PLAIN, PLAIN, both))
        .singleElement()
        .extracting(InvalidReason::code)
        .isEqualTo(ReasonCode.COMPOSITION);
  }

  @Test
  void limitsThatLeaveNothingAreRefused() {
    var composite =
        CompositeBackends.createCompositeBackend(
            backend("ONE", PLAIN).name(),
            backend("ONE", PLAIN),
            backend("TWO", PLAIN),
            POLICY,
            CompositeLimits.NONE.headSizes(3).kernelBlockSizes(5));

    assertThat(composite.getError().map(InvalidReason::code))
        .containsExactly(ReasonCode.HEAD_SIZE, ReasonCode.BLOCK_SIZE);
  }

  @Test
  void everyReasonIsToldAtOnceInAFixedOrder() {
    FeatureSet other =
        FeatureSet.NONE
            .withDtypes(DType.FP16)
            .withKvCacheDtypes(KvCacheDtype.FP8_E5M2)
            .withBlockSizes(BlockSizes.exactly(5))
            .withHeadSizes(HeadSizes.exactly(3))
            .withTypes(AttentionType.ENCODER)
            .withFeatures(Feature.KV_WRITE_IN_FORWARD, Feature.MLA)
            .withKvLayouts(KvLayouts.HND)
            .withDevices(DeviceSupport.on(Platform.ROCM));

    assertThat(
            reasons(
                    PLAIN.withKvLayouts(KvLayouts.NHD),
                    other,
                    new MMPrefixAttentionRouting().withLowering(Lowering.LEFT_WINDOW))
                .map(InvalidReason::code))
        .containsExactly(
            ReasonCode.COMPOSITION,
            ReasonCode.MLA,
            ReasonCode.DEVICE,
            ReasonCode.DTYPE,
            ReasonCode.ATTENTION_TYPE,
            ReasonCode.HEAD_SIZE,
            ReasonCode.KV_CACHE_DTYPE,
            ReasonCode.KV_LAYOUT,
            ReasonCode.BLOCK_SIZE,
            ReasonCode.NON_CAUSAL);
  }

  @Test
  void theThrowingTwinTellsEveryReasonAndWhatToDo() {
    assertThatThrownBy(
            () ->
                CompositeBackends.createCompositeBackendOrThrow(
                    backend("ONE", PLAIN.withDtypes(DType.FP32)),
                    backend(
                        "TWO", PLAIN.withDtypes(DType.BF16).withHeadSizes(HeadSizes.exactly(3))),
                    POLICY))
        .isInstanceOfSatisfying(
            BifocalException.class,
            e -> {
              assertThat(e.code()).isEqualTo(ErrorCode.INVALID_COMPOSITION);
              assertThat(e.remedy()).isNotBlank();
            })
        .hasMessageContainingAll("ONE and TWO", "no common dtype", "no common head size");
  }
}
