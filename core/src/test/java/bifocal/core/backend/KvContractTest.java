package bifocal.core.backend;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayout;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

class KvContractTest {
  private static final AttentionLayerSpec.Dense LAYER =
      AttentionLayerSpec.Dense.decoder(16, 8, 256, DType.BF16, AttentionMask.CAUSAL);
  private static final FeatureSet PLAIN =
      FeatureSet.NONE
          .withKvLayouts(KvLayouts.NHD)
          .withKvCacheDtypes(KvCacheDtype.AUTO, KvCacheDtype.FP8_E4M3)
          .withBlockSizes(BlockSizes.multiplesOf(16));
  private static final KvLayout VECTORISED = new VectorisedLayout(8);

  @Test
  void aPageIsDividedIntoTheLargestBlocksThatBothKernelsRun() {
    KvCacheSpec spec =
        resolve(
                PLAIN.withBlockSizes(BlockSizes.multiplesOf(16)),
                PLAIN.withBlockSizes(BlockSizes.exactly(16, 32)),
                Option.some(256))
            .get();
    assertThat(spec.blockSize()).isEqualTo(32);
  }

  @Test
  void aPinnedSizeThatNobodyRunsIsRefusedWithAllSets() {
    InvalidReason reason =
        onlyReason(
            resolve(
                PLAIN.withBlockSizes(BlockSizes.multiplesOf(16)),
                PLAIN.withBlockSizes(BlockSizes.exactly(64)),
                Option.some(48)));
    assertThat(reason.code()).isEqualTo(ReasonCode.BLOCK_SIZE);
    assertThat(reason.text()).contains("48").contains("writer A [%16]").contains("reader B [64]");
  }

  @Test
  void multiplesMeetInTheirLeastCommonMultiple() {
    Validation<Seq<InvalidReason>, KvCacheSpec> chosen =
        resolve(
            PLAIN.withBlockSizes(BlockSizes.multiplesOf(16)),
            PLAIN.withBlockSizes(BlockSizes.multiplesOf(24)),
            Option.none());
    assertThat(chosen.get().blockSize()).isEqualTo(48);
  }

  @Test
  void whoDeclaresNoBlockSizeSupportsNone() {
    InvalidReason reason =
        onlyReason(resolve(PLAIN, PLAIN.withBlockSizes(BlockSizes.NONE), Option.none()));
    assertThat(reason.text()).contains("writer A [%16]").contains("reader B [none]");
  }

  @Test
  void withoutAWishTheDefaultBlockIsTakenWhereItRuns() {
    assertThat(resolve(PLAIN, PLAIN, Option.none()).get().blockSize()).isEqualTo(16);
    FeatureSet large = PLAIN.withBlockSizes(BlockSizes.exactly(128, 64));
    assertThat(resolve(large, large, Option.none()).get().blockSize()).isEqualTo(64);
  }

  @Test
  void theLayoutThatAllRolesKnowIsChosen() {
    KvCacheSpec spec =
        KvContract.resolve(
                party("prefill writer", PLAIN.withKvLayouts(VECTORISED, KvLayouts.NHD)),
                Vector.of(
                    party("decode reader", PLAIN.withKvLayouts(KvLayouts.NHD, VECTORISED)),
                    party("fused rope writer", PLAIN.withKvLayouts(KvLayouts.NHD))),
                LAYER,
                KvScales.ONE,
                Option.none())
            .get();
    assertThat(spec.layout().name()).isEqualTo("NHD");
  }

  @Test
  void amongCommonLayoutsTheOneMostPartiesPreferWins() {
    FeatureSet nhdFirst = PLAIN.withKvLayouts(KvLayouts.NHD, KvLayouts.HND);
    FeatureSet hndFirst = PLAIN.withKvLayouts(KvLayouts.HND, KvLayouts.NHD);
    assertThat(
            KvContract.resolve(
                    party("writer A", nhdFirst),
                    Vector.of(party("reader B", hndFirst), party("reader C", hndFirst)),
                    LAYER,
                    KvScales.ONE,
                    Option.none())
                .get()
                .layout()
                .name())
        .isEqualTo("HND");
    assertThat(resolve(nhdFirst, hndFirst, Option.none()).get().layout().name()).isEqualTo("NHD");
  }

  @Test
  void aRoleThatAloneDisagreesIsNamedWithWhatTheOthersShare() {
    InvalidReason reason =
        onlyReason(
            KvContract.resolve(
                party("prefill writer", PLAIN.withKvLayouts(VECTORISED)),
                Vector.of(
                    party("decode reader", PLAIN.withKvLayouts(VECTORISED)),
                    party("fused rope writer", PLAIN.withKvLayouts(KvLayouts.NHD))),
                LAYER,
                KvScales.ONE,
                Option.none()));
    assertThat(reason.code()).isEqualTo(ReasonCode.KV_LAYOUT);
    assertThat(reason.text())
        .contains("prefill writer [VECTORISED_8]")
        .contains("decode reader [VECTORISED_8]")
        .contains("fused rope writer [NHD]");
    assertThat(reason.wanted()).isEqualTo("VECTORISED_8 from fused rope writer");
  }

  @Test
  void rolesThatShareNoLayoutAtAllAreRefused() {
    InvalidReason reason =
        onlyReason(
            KvContract.resolve(
                party("prefill writer", PLAIN.withKvLayouts(VECTORISED)),
                Vector.of(
                    party("decode reader", PLAIN.withKvLayouts(KvLayouts.HND)),
                    party("fused rope writer", PLAIN.withKvLayouts(KvLayouts.NHD))),
                LAYER,
                KvScales.ONE,
                Option.none()));
    assertThat(reason.wanted()).isEqualTo("a layout that every party knows");
  }

  @Test
  void aVectorWidthThatDoesNotDivideTheHeadIsAnObjectionUnlessAnotherLayoutServes() {
    AttentionLayerSpec odd =
        AttentionLayerSpec.Dense.decoder(16, 8, 36, DType.BF16, AttentionMask.CAUSAL);
    FeatureSet only = PLAIN.withKvLayouts(VECTORISED);
    FeatureSet both = PLAIN.withKvLayouts(VECTORISED, KvLayouts.NHD);
    InvalidReason reason =
        onlyReason(
            KvContract.resolve(
                party("writer A", only),
                Vector.of(party("reader B", only)),
                odd,
                KvScales.ONE,
                Option.none()));
    assertThat(reason.text()).contains("VECTORISED_8").contains("8").contains("36");
    assertThat(
            KvContract.resolve(
                    party("writer A", both),
                    Vector.of(party("reader B", both)),
                    odd,
                    KvScales.ONE,
                    Option.none())
                .get()
                .layout()
                .name())
        .isEqualTo("NHD");
  }

  @Test
  void theModelsTypeStandsForAutoOnEitherSide() {
    FeatureSet named = PLAIN.withKvCacheDtypes(KvCacheDtype.BFLOAT16);
    assertThat(resolve(PLAIN, named, Option.none()).get().dtype()).isEqualTo(KvCacheDtype.BFLOAT16);
    FeatureSet half = PLAIN.withKvCacheDtypes(KvCacheDtype.FLOAT16);
    InvalidReason reason = onlyReason(resolve(PLAIN, half, Option.none()));
    assertThat(reason.text())
        .isEqualTo("kv_cache_dtype bfloat16 not supported: reader B [float16]");
  }

  @Test
  void theShortNameOfFp8MeansItsE4m3Form() {
    Validation<Seq<InvalidReason>, KvCacheSpec> resolved =
        KvContract.resolve(
            party("writer A", PLAIN),
            Vector.of(party("reader B", PLAIN.withKvCacheDtypes(KvCacheDtype.FP8))),
            LAYER.withKvCacheDtype(KvCacheDtype.FP8),
            KvScales.ONE,
            Option.none());
    assertThat(resolved.get().dtype()).isEqualTo(KvCacheDtype.FP8_E4M3);
  }

  @Test
  void scalesNeedEveryPartysConsent() {
    FeatureSet scaled = PLAIN.withFeatures(Feature.KV_SCALES);
    KvScales scales = new KvScales.PerTensor(0.5f, 2f);
    AttentionLayerSpec fp8 = LAYER.withKvCacheDtype(KvCacheDtype.FP8_E4M3);
    assertThat(resolve(scaled, scaled, fp8, scales).get().scales()).isEqualTo(scales);
    InvalidReason reason = onlyReason(resolve(scaled, PLAIN, fp8, scales));
    assertThat(reason.code()).isEqualTo(ReasonCode.KV_SCALES);
    assertThat(reason.text()).contains("reader B");
  }

  @Test
  void scalesPerHeadAreCountedAndAskedForByThemselves() {
    FeatureSet perHead = PLAIN.withFeatures(Feature.PER_HEAD_QUANT_SCALES);
    AttentionLayerSpec fp8 = LAYER.withKvCacheDtype(KvCacheDtype.FP8_E4M3);
    KvScales eight = new KvScales.PerHead(filled(8), filled(8));
    KvScales four = new KvScales.PerHead(filled(4), filled(4));
    assertThat(resolve(perHead, perHead, fp8, eight).isValid()).isTrue();
    assertThat(onlyReason(resolve(perHead, perHead, fp8, four)).seen()).isEqualTo("4");
    assertThat(
            resolve(PLAIN.withFeatures(Feature.KV_SCALES), perHead, fp8, eight).getError().size())
        .isEqualTo(1);
  }

  @Test
  void aCacheThatKeepsItsOwnScalesTakesNoOthers() {
    FeatureSet own =
        PLAIN.withFeatures(Feature.KV_SCALES).withKvCacheDtypes(KvCacheDtype.INT8_PER_TOKEN_HEAD);
    AttentionLayerSpec layer = LAYER.withKvCacheDtype(KvCacheDtype.INT8_PER_TOKEN_HEAD);
    assertThat(onlyReason(resolve(own, own, layer, new KvScales.PerTensor(2, 2))).code())
        .isEqualTo(ReasonCode.KV_SCALES);
  }

  @Test
  void allReasonsAreReportedAtOnce() {
    FeatureSet other =
        FeatureSet.NONE
            .withKvLayouts(KvLayouts.HND)
            .withKvCacheDtypes(KvCacheDtype.FLOAT16)
            .withBlockSizes(BlockSizes.exactly(24));
    assertThat(resolve(PLAIN, other, Option.none()).getError().map(InvalidReason::code))
        .containsExactly(ReasonCode.KV_LAYOUT, ReasonCode.KV_CACHE_DTYPE, ReasonCode.BLOCK_SIZE);
  }

  private static float[] filled(int count) {
    float[] scales = new float[count];
    Arrays.fill(scales, 0.5f);
    return scales;
  }

  private static KvContract.Party party(String role, FeatureSet features) {
    return new KvContract.Party(role, features);
  }

  private static Validation<Seq<InvalidReason>, KvCacheSpec> resolve(
      FeatureSet writer, FeatureSet reader, Option<Integer> page) {
    return KvContract.resolve(
        party("writer A", writer), Vector.of(party("reader B", reader)), LAYER, KvScales.ONE, page);
  }

  private static Validation<Seq<InvalidReason>, KvCacheSpec> resolve(
      FeatureSet writer, FeatureSet reader, AttentionLayerSpec layer, KvScales scales) {
    return KvContract.resolve(
        party("writer A", writer),
        Vector.of(party("reader B", reader)),
        layer,
        scales,
        Option.none());
  }

  private static InvalidReason onlyReason(Validation<Seq<InvalidReason>, KvCacheSpec> result) {
    assertThat(result.isInvalid()).isTrue();
    assertThat(result.getError()).hasSize(1);
    return result.getError().head();
  }

  /** Values in vectors of so many elements. */
  private record VectorisedLayout(int width) implements KvLayout {
    @Override
    public String name() {
      return "VECTORISED_" + width;
    }

    @Override
    public Option<String> objection(KvCacheSpec spec) {
      return Option.when(
          spec.headSizeV() % width != 0,
          () -> "vectors of " + width + " do not divide head size " + spec.headSizeV());
    }

    @Override
    public long blockBytes(KvCacheSpec spec) {
      return 1;
    }

    @Override
    public long valueOffset(KvCacheSpec spec) {
      return 0;
    }

    @Override
    public void write(
        KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] key, float[] value) {
      throw new AssertionError("nothing is written before the contract");
    }

    @Override
    public void readKey(KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] key) {
      throw new AssertionError("nothing is read before the contract");
    }

    @Override
    public void readValue(
        KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] value) {
      throw new AssertionError("nothing is read before the contract");
    }
  }
}
