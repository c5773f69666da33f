package bifocal.cuda.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;
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
import bifocal.core.cache.LatentKvLayout;
import bifocal.core.graph.GraphSupport;
import bifocal.core.select.BackendDeclaration;
import bifocal.core.select.FeatureColumn;
import bifocal.core.select.FeatureRow;
import bifocal.core.select.LatentRows;
import bifocal.core.tensor.DType;
import io.vavr.control.Option;

/**
 * Backends of DeepSeek V4: a window, and compressed entries that an indexer chooses, in one softmax
 * with a sink. One latent of 512 numbers is key and value.
 */
final class DeepSeekV4 {
  static final BackendName FLASHMLA_NAME = BackendName.of("FLASHMLA_SPARSE_DSV4");
  static final BackendName FLASHINFER_NAME = BackendName.of("FLASHINFER_MLA_SPARSE_DSV4");

  private static final int BLACKWELL = 10;
  private static final int WORKSTATION_BLACKWELL = 12;

  /** What every generation of the model asks. */
  static final FeatureSet SHARED =
      LatentRows.plus(LatentRows.SPARSE, Feature.SINK, Feature.KV_SCALES)
          .withDtypes(DType.BF16)
          .withHeadSizes(HeadSizes.exactly(512));

  private static final FeatureSet FLASHMLA_ROW =
      SHARED
          .withKvCacheDtypes(
              KvCacheDtype.AUTO,
              KvCacheDtype.FP8_DS_MLA,
              KvCacheDtype.FP8,
              KvCacheDtype.FP8_E4M3,
              KvCacheDtype.BFLOAT16)
          .withBlockSizes(BlockSizes.exactly(256))
          .withKvLayouts(LatentKvLayout.DEEPSEEK_V4)
          .withDevices(DeviceSupport.cuda(DeviceSupport.Range.majors(9, 10)));

  private static final FeatureSet FLASHINFER_ROW =
      SHARED
          .withKvCacheDtypes(
              KvCacheDtype.AUTO,
              KvCacheDtype.BFLOAT16,
              KvCacheDtype.FP8,
              KvCacheDtype.FP8_E4M3,
              KvCacheDtype.FP8_DS_MLA)
          .withBlockSizes(BlockSizes.exactly(256))
          .withKvLayouts(LatentKvLayout.ROWS_PAGED_512, LatentKvLayout.DEEPSEEK_V4)
          .withDevices(
              DeviceSupport.cuda(
                  DeviceSupport.Range.majors(10, 10), DeviceSupport.Range.majors(12, 12)));

  /** Its row prints what a class states by default; the class inherits the rest. */
  static final BackendDeclaration FLASHMLA =
      LatentRows.declare(
              defaults(LatentRows.deepSeekV4(FLASHMLA_NAME, FLASHMLA_ROW)),
              GraphSupport.UNIFORM_BATCH,
              DecodeThreshold.uniform(1))
          .choosing(DeepSeekV4::flashMla)
          .but(DeepSeekV4::packedTypes);

  static final BackendDeclaration FLASHINFER =
      LatentRows.declare(
              LatentRows.deepSeekV4(FLASHINFER_NAME, FLASHINFER_ROW),
              GraphSupport.UNIFORM_BATCH,
              DecodeThreshold.uniform(1))
          .choosing(DeepSeekV4::flashInfer)
          .but(DeepSeekV4::flashInferOnDevice);

  private DeepSeekV4() {}

  /** The row as the reference prints it. */
  private static FeatureRow defaults(FeatureRow row) {
    return row.spelled(FeatureColumn.DTYPES, "fp16, bf16")
        .spelled(FeatureColumn.KV_DTYPES, "auto")
        .spelled(FeatureColumn.BLOCK_SIZES, "Any")
        .spelled(FeatureColumn.HEAD_SIZES, "Any")
        .spelled(FeatureColumn.SINK, "no")
        .spelled(FeatureColumn.SPARSE, "no")
        .spelled(FeatureColumn.COMPUTE_CAPABILITY, "Any");
  }

  private static ResolvedVariant flashMla(AttentionRequest request) {
    ResolvedVariant variant =
        ResolvedVariant.of("", Capabilities.of(FLASHMLA_ROW), GraphSupport.UNIFORM_BATCH)
            .dividing(DecodeThreshold.uniform(1));
    return LatentCacheTypes.packable(request.layer().kvCacheDtype())
        ? variant.caching(KvCacheDtype.FP8_DS_MLA)
        : variant;
  }

  private static ResolvedVariant flashInfer(AttentionRequest request) {
    ResolvedVariant variant =
        ResolvedVariant.of("", Capabilities.of(FLASHINFER_ROW), GraphSupport.UNIFORM_BATCH)
            .dividing(DecodeThreshold.uniform(1));
    return LatentCacheTypes.packedByFlashInfer(request.device())
            && LatentCacheTypes.packable(request.layer().kvCacheDtype())
        ? variant.caching(KvCacheDtype.FP8_DS_MLA)
        : variant;
  }

  /** Packed records hold fp8 numbers, so a cache of the model's type is no wish to grant. */
  static Option<InvalidReason> packedTypes(AttentionRequest request, ResolvedVariant variant) {
    KvCacheDtype cache = request.layer().kvCacheDtype();
    return Features.when(
        !LatentCacheTypes.packable(cache),
        ReasonCode.KV_CACHE_DTYPE,
        "DeepseekV4 packed KV layouts only support fp8 kv-cache, got "
            + cache
            + "; use --kv-cache-dtype fp8",
        cache,
        "auto, fp8, fp8_e4m3, fp8_ds_mla");
  }

  /** The rules of FlashInfer's kernels, which V4.1 repeats word for word. */
  static Option<InvalidReason> flashInferOnDevice(
      AttentionRequest request, ResolvedVariant variant) {
    int major = Sm.major(request.device());
    KvCacheDtype cache = request.layer().kvCacheDtype();
    if (major == BLACKWELL) {
      return Features.when(
          cache == KvCacheDtype.FP8_DS_MLA,
          ReasonCode.KV_CACHE_DTYPE,
          "FLASHINFER_MLA_SPARSE_DSV4 SM10x uses the plain per-tensor FP8 KV layout, not"
              + " fp8_ds_mla",
          cache,
          "fp8");
    }
    if (major != WORKSTATION_BLACKWELL) {
      return Features.when(
          true,
          ReasonCode.DEVICE,
          "FLASHINFER_MLA_SPARSE_DSV4 requires SM10x or SM12x",
          request.device().label(),
          "10.x, 12.x");
    }
    return Features.when(
            !LatentCacheTypes.packable(cache),
            ReasonCode.KV_CACHE_DTYPE,
            "kv_cache_dtype not supported",
            cache,
            "auto, fp8, fp8_e4m3, fp8_ds_mla; use --kv-cache-dtype fp8")
        .orElse(
            () ->
                Features.when(
                    !KernelPackages.FLASHINFER_SPARSE_MLA.on(request.device()),
                    ReasonCode.COMBINATION,
                    "FLASHINFER_MLA_SPARSE_DSV4 SM120 requires FlashInfer's sparse MLA decode API",
                    "no flashinfer-sparse-mla",
                    "FlashInfer with its sparse MLA decode API"));
  }
}
