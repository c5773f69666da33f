package bifocal.cuda.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.DecodeThreshold;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.backend.ResolvedVariant;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.Platform;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.select.BackendDeclaration;
import bifocal.core.select.FeatureColumn;
import bifocal.core.select.LatentRows;
import io.vavr.collection.Set;
import io.vavr.collection.TreeSet;
import io.vavr.control.Option;

/**
 * Latent decode over every key. Most rows print {@code Any} head size because their classes state
 * none; they inherit two sizes.
 */
final class DenseLatent {
  private static final String ANY = "Any";
  private static final HeadSizes INHERITED = HeadSizes.exactly(320, 576);
  private static final Set<Integer> FLASHINFER_NOPE = TreeSet.of(64, 128, 192);
  private static final KvCacheDtype[] PLAIN_OR_FP8 = {
    KvCacheDtype.AUTO,
    KvCacheDtype.FLOAT16,
    KvCacheDtype.BFLOAT16,
    KvCacheDtype.FP8,
    KvCacheDtype.FP8_E4M3
  };
  private static final DeviceSupport ON_HOPPER = majors(9, 9);
  private static final DeviceSupport ON_BLACKWELL = majors(10, 10);

  private static final FeatureSet WITH_FP8 =
      LatentRows.plus(LatentRows.DENSE, Feature.DCP, Feature.KV_SCALES)
          .withKvCacheDtypes(PLAIN_OR_FP8)
          .withHeadSizes(INHERITED);

  /** It takes no scales of queries and latents. */
  private static final FeatureSet CUTLASS_ROW =
      LatentRows.plus(LatentRows.DENSE, Feature.DCP, Feature.LSE)
          .withKvCacheDtypes(PLAIN_OR_FP8)
          .withHeadSizes(INHERITED)
          .withBlockSizes(BlockSizes.exactly(128))
          .withDevices(ON_BLACKWELL);

  private static final FeatureSet FLASHINFER_ROW =
      LatentRows.plus(WITH_FP8, Feature.NON_CAUSAL, Feature.LSE_BASE_2)
          .withBlockSizes(BlockSizes.exactly(32, 64))
          .withDevices(ON_BLACKWELL);

  private static final FeatureSet TOKENSPEED_ROW =
      FLASHINFER_ROW.withKvCacheDtypes(KvCacheDtype.FP8, KvCacheDtype.FP8_E4M3);

  private static final FeatureSet FLASHMLA_ROW =
      LatentRows.plus(WITH_FP8, Feature.LSE)
          .withBlockSizes(BlockSizes.exactly(64))
          .withDevices(majors(9, 10));

  private static final FeatureSet FLASH_ATTENTION_ROW =
      LatentRows.plus(LatentRows.DENSE, Feature.DCP, Feature.LSE, Feature.BATCH_INVARIANCE)
          .withHeadSizes(INHERITED)
          .withBlockSizes(BlockSizes.multiplesOf(16))
          .withDevices(ON_HOPPER);

  private static final FeatureSet TRITON_ROW =
      LatentRows.plus(WITH_FP8, Feature.NON_CAUSAL, Feature.LSE, Feature.BATCH_INVARIANCE)
          .withHeadSizes(HeadSizes.ANY)
          .withBlockSizes(BlockSizes.multiplesOf(16))
          .withDevices(DeviceSupport.on(Platform.CUDA, Platform.ROCM, Platform.XPU));

  static final BackendDeclaration CUTLASS =
      LatentRows.remarking(
          declare(
              "CUTLASS_MLA",
              CUTLASS_ROW,
              GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE,
              DecodeThreshold.single()),
          CutlassLatent::remarks);

  static final BackendDeclaration FLASHINFER =
      LatentRows.remarking(
              declare(
                  "FLASHINFER_MLA",
                  FLASHINFER_ROW,
                  GraphSupport.UNIFORM_BATCH,
                  DecodeThreshold.uniform(1)),
              request ->
                  LatentCacheTypes.headFirst(request).appendAll(FlashInferLatent.remarks(request)))
          .but(DenseLatent::flashInferNope);

  static final BackendDeclaration TOKENSPEED =
      LatentRows.remarking(
              declare(
                  "TOKENSPEED_MLA",
                  TOKENSPEED_ROW,
                  GraphSupport.UNIFORM_BATCH,
                  DecodeThreshold.uniform(1)),
              request ->
                  LatentCacheTypes.headFirst(request).appendAll(TokenSpeedLatent.remarks(request)))
          .but(DenseLatent::tokenSpeedInstalled)
          .but(DenseLatent::tokenSpeedDimensions)
          .but(TokenSpeedLatent::drafts)
          .but((request, variant) -> TokenSpeedLatent.cacheType(request.layer().kvCacheDtype()));

  static final BackendDeclaration FLASHMLA =
      declare("FLASHMLA", FLASHMLA_ROW, GraphSupport.UNIFORM_BATCH, DecodeThreshold.uniform(128))
          .but((request, variant) -> FlashMlaLibrary.dense(request.device()));

  static final BackendDeclaration FLASH_ATTENTION =
      declare(
              "FLASH_ATTN_MLA",
              FLASH_ATTENTION_ROW,
              GraphSupport.UNIFORM_BATCH,
              DecodeThreshold.varying(512))
          .but(DenseLatent::flashAttention)
          .but(
              (request, variant) -> FlashAttentionLatent.cacheType(request.layer().kvCacheDtype()));

  static final BackendDeclaration TRITON =
      LatentRows.remarking(
              declare(
                  "TRITON_MLA",
                  TRITON_ROW,
                  GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE,
                  DecodeThreshold.single()),
              TritonLatent::remarks)
          .but(DenseLatent::tritonTypes);

  private DenseLatent() {}

  private static DeviceSupport majors(int from, int to) {
    return DeviceSupport.cuda(DeviceSupport.Range.majors(from, to));
  }

  private static BackendDeclaration declare(
      String name, FeatureSet row, GraphSupport graphSupport, DecodeThreshold decodes) {
    return LatentRows.declare(
        LatentRows.row(BackendName.of(name), row).spelled(FeatureColumn.HEAD_SIZES, ANY),
        graphSupport,
        decodes);
  }

  private static Option<InvalidReason> flashInferNope(
      AttentionRequest request, ResolvedVariant variant) {
    return LatentShape.of(request)
        .map(AttentionLayerSpec.Mla::qkNopeHeadDim)
        .filter(nope -> !FLASHINFER_NOPE.contains(nope))
        .map(
            nope ->
                new InvalidReason(
                    ReasonCode.COMBINATION,
                    "FlashInfer MLA kernel requires qk_nope_head_dim in [64, 128, 192], but got "
                        + nope,
                    String.valueOf(nope),
                    "qk_nope_head_dim of 64, 128 or 192"));
  }

  private static Option<InvalidReason> tokenSpeedInstalled(
      AttentionRequest request, ResolvedVariant variant) {
    return Features.when(
        !KernelPackages.TOKENSPEED_MLA.on(request.device()),
        ReasonCode.COMBINATION,
        "tokenspeed_mla package is not installed. Install it with: `uv pip install"
            + " tokenspeed-mla`",
        "no tokenspeed-mla",
        "the tokenspeed-mla package");
  }

  private static Option<InvalidReason> tokenSpeedDimensions(
      AttentionRequest request, ResolvedVariant variant) {
    return LatentShape.of(request)
        .filter(
            mla -> mla.qkNopeHeadDim() != 128 || mla.qkRopeHeadDim() != 64 || mla.vHeadDim() != 128)
        .map(
            mla ->
                "("
                    + mla.qkNopeHeadDim()
                    + ", "
                    + mla.qkRopeHeadDim()
                    + ", "
                    + mla.vHeadDim()
                    + ")")
        .map(
            seen ->
                new InvalidReason(
                    ReasonCode.COMBINATION,
                    "tokenspeed_mla requires DeepSeek R1 MLA dimensions (qk_nope_head_dim=128,"
                        + " qk_rope_head_dim=64, v_head_dim=128), got "
                        + seen,
                    seen,
                    "(128, 64, 128)"));
  }

  /** FlashAttention 3 on Hopper, with the latent query apart from the rotary one. */
  static Option<InvalidReason> flashAttention(AttentionRequest request, ResolvedVariant variant) {
    return Features.when(
        Sm.major(request.device()) != 9 || !KernelPackages.FLASH_ATTENTION_3.on(request.device()),
        ReasonCode.COMBINATION,
        "FlashAttention MLA not supported on this device",
        request.device().label(),
        "FlashAttention 3 on 9.x");
  }

  /** Older devices lack the conversions of the cache's type. */
  private static Option<InvalidReason> tritonTypes(
      AttentionRequest request, ResolvedVariant variant) {
    if (Sm.of(request.device()).isEmpty()) {
      return Option.none();
    }
    KvCacheDtype cache = request.layer().kvCacheDtype().resolve(request.layer().dtype());
    boolean fp8 = cache == KvCacheDtype.FP8_E4M3 && !Sm.atLeast(request.device(), 8, 9);
    boolean bf16 = cache == KvCacheDtype.BFLOAT16 && !Sm.atLeast(request.device(), 8, 0);
    return Features.when(
        fp8 || bf16,
        ReasonCode.KV_CACHE_DTYPE,
        "kv_cache_dtype " + cache + " not supported on " + request.device().label(),
        cache,
        fp8 ? "8.9 or newer for an fp8 cache" : "8.0 or newer for a bf16 cache");
  }
}
