package bifocal.cuda.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;
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
import bifocal.core.latent.QueryQuantization;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.select.BackendDeclaration;
import bifocal.core.select.FeatureColumn;
import bifocal.core.select.LatentRows;
import bifocal.core.tensor.DType;
import io.vavr.collection.HashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.control.Option;

/** Latent decode over the keys that an indexer chose. */
final class SparseLatent {
  private static final BackendName TRTLLM = BackendName.of("FLASHINFER_MLA_SPARSE");
  private static final BackendName SM120 = BackendName.of("FLASHINFER_MLA_SPARSE_SM120");
  private static final BackendName SM90 = BackendName.of("FLASHINFER_MLA_SPARSE_SM90");
  private static final BackendName FLASHMLA_NAME = BackendName.of("FLASHMLA_SPARSE");
  private static final BackendName FLASH_ATTENTION_NAME = BackendName.of("FLASH_ATTN_MLA_SPARSE");

  private static final int HOPPER = 9;
  private static final int BLACKWELL = 10;
  private static final int WORKSTATION_BLACKWELL = 12;
  private static final int ROPE_FREE_HEAD = 512;
  private static final int SM120_TOPK = 2048;
  private static final HeadSizes LATENT = HeadSizes.exactly(512, 576);
  private static final Set<Integer> TRTLLM_NOPE = HashSet.of(128, 192);
  private static final Set<KvCacheDtype> SM120_TYPES =
      HashSet.of(
          KvCacheDtype.AUTO, KvCacheDtype.FP8, KvCacheDtype.FP8_E4M3, KvCacheDtype.FP8_DS_MLA);
  private static final Set<KvCacheDtype> HALVES =
      HashSet.of(KvCacheDtype.AUTO, KvCacheDtype.FLOAT16, KvCacheDtype.BFLOAT16);
  private static final Set<KvCacheDtype> ROPE_FREE_TYPES = HALVES.add(KvCacheDtype.FP8_DS_MLA);

  private static final FeatureSet TRTLLM_ROW =
      LatentRows.plus(LatentRows.SPARSE, Feature.DCP, Feature.LSE_BASE_2, Feature.KV_SCALES)
          .withKvCacheDtypes(
              KvCacheDtype.AUTO,
              KvCacheDtype.FLOAT16,
              KvCacheDtype.BFLOAT16,
              KvCacheDtype.FP8,
              KvCacheDtype.FP8_E4M3)
          .withHeadSizes(LATENT)
          .withBlockSizes(BlockSizes.exactly(32, 64))
          .withDevices(DeviceSupport.cuda(DeviceSupport.Range.majors(10, 10)));

  private static final FeatureSet SM120_ROW =
      LatentRows.SPARSE
          .withDtypes(DType.BF16)
          .withKvCacheDtypes(
              KvCacheDtype.AUTO, KvCacheDtype.FP8, KvCacheDtype.FP8_E4M3, KvCacheDtype.FP8_DS_MLA)
          .withHeadSizes(LATENT)
          .withBlockSizes(BlockSizes.exactly(64, 256))
          .withKvLayouts(LatentKvLayout.FP8_DS_MLA)
          .withDevices(DeviceSupport.cuda(DeviceSupport.Range.majors(12, 12)));

  private static final FeatureSet SM90_ROW =
      LatentRows.plus(LatentRows.SPARSE, Feature.KV_SCALES)
          .withDtypes(DType.BF16)
          .withKvCacheDtypes(
              KvCacheDtype.AUTO, KvCacheDtype.BFLOAT16, KvCacheDtype.FP8, KvCacheDtype.FP8_E4M3)
          .withHeadSizes(LATENT)
          .withBlockSizes(BlockSizes.multiplesOf(64))
          .withDevices(DeviceSupport.cuda(DeviceSupport.Range.majors(9, 9)));

  private static final FeatureSet FLASHMLA_ROW =
      LatentRows.plus(LatentRows.SPARSE, Feature.DCP, Feature.LSE)
          .withDtypes(DType.BF16)
          .withKvCacheDtypes(
              KvCacheDtype.AUTO,
              KvCacheDtype.BFLOAT16,
              KvCacheDtype.FP8_DS_MLA,
              KvCacheDtype.NVFP4_DS_MLA,
              KvCacheDtype.FP8)
          .withHeadSizes(HeadSizes.exactly(576, ROPE_FREE_HEAD))
          .withBlockSizes(BlockSizes.exactly(64))
          .withKvLayouts(
              LatentKvLayout.ROWS, LatentKvLayout.FP8_DS_MLA, LatentKvLayout.NVFP4_DS_MLA)
          .withDevices(DeviceSupport.cuda(DeviceSupport.Range.majors(9, 10)));

  private static final FeatureSet FLASH_ATTENTION_ROW =
      LatentRows.SPARSE
          .withBlockSizes(BlockSizes.exactly(64))
          .withDevices(DeviceSupport.cuda(DeviceSupport.Range.majors(9, 9)));

  /** Its row says that it is not sparse, and that it takes any head; its class knows better. */
  static final BackendDeclaration FLASHINFER =
      LatentRows.remarking(
              LatentRows.declare(
                  LatentRows.row(TRTLLM, TRTLLM_ROW)
                      .spelled(FeatureColumn.HEAD_SIZES, "Any")
                      .spelled(FeatureColumn.SPARSE, "no"),
                  GraphSupport.UNIFORM_BATCH,
                  LatentShape::blackwellThreshold),
              LatentCacheTypes::standardFp8)
          .but(SparseLatent::standardFp8)
          .but(SparseLatent::trtllmNope)
          .but(SparseLatent::trtllmTopk);

  /** As the other row of FlashInfer; its cache always has the packed records. */
  static final BackendDeclaration FLASHINFER_SM120 =
      LatentRows.declare(
              LatentRows.row(SM120, SM120_ROW)
                  .spelled(FeatureColumn.HEAD_SIZES, "Any")
                  .spelled(FeatureColumn.SPARSE, "no"),
              GraphSupport.UNIFORM_BATCH,
              LatentShape::blackwellThreshold)
          .choosing(
              request ->
                  ResolvedVariant.of("", Capabilities.of(SM120_ROW), GraphSupport.UNIFORM_BATCH)
                      .dividing(LatentShape.blackwellThreshold(request))
                      .caching(KvCacheDtype.FP8_DS_MLA))
          .remarking(SparseLatent::sm120Queries)
          .but(SparseLatent::sm120Api)
          .but(SparseLatent::sm120Types)
          .but(SparseLatent::sm120Topk);

  static final BackendDeclaration FLASHINFER_SM90 =
      LatentRows.remarking(
              LatentRows.declare(
                  LatentRows.row(SM90, SM90_ROW),
                  GraphSupport.UNIFORM_BATCH,
                  LatentShape::blackwellThreshold),
              FlashInferSm90Plan::remarks)
          .but(SparseLatent::sm90Installed)
          .but(SparseLatent::sm90Dimensions);

  static final BackendDeclaration FLASHMLA =
      LatentRows.declare(
              LatentRows.row(FLASHMLA_NAME, FLASHMLA_ROW)
                  .spelled(FeatureColumn.KV_DTYPES, "auto, bfloat16, fp8_ds_mla, nvfp4_ds_mla"),
              GraphSupport.UNIFORM_BATCH,
              LatentShape::thresholdOfDevice)
          .choosing(SparseLatent::flashMla)
          .remarking(request -> FlashMlaSparseHeads.remarks(request, packed(request)))
          .but(SparseLatent::nvfp4OnBlackwell)
          .but(SparseLatent::ropeFreeOnHopper)
          .but((request, variant) -> FlashMlaLibrary.sparse(request.device()))
          .but(SparseLatent::sharedBothWays);

  static final BackendDeclaration FLASH_ATTENTION =
      LatentRows.declare(
              LatentRows.row(FLASH_ATTENTION_NAME, FLASH_ATTENTION_ROW),
              GraphSupport.UNIFORM_BATCH,
              LatentShape::threshold)
          .but(SparseLatent::flashAttentionTypes)
          .but(DenseLatent::flashAttention)
          .but(SparseLatent::flashAttentionAlone)
          .but(SparseLatent::flashAttentionTopk);

  private SparseLatent() {}

  /** A quantised cache is packed, whichever of its names the user says. */
  private static ResolvedVariant flashMla(AttentionRequest request) {
    ResolvedVariant plain =
        ResolvedVariant.of("", Capabilities.of(FLASHMLA_ROW), GraphSupport.UNIFORM_BATCH)
            .dividing(LatentShape.thresholdOfDevice(request));
    KvCacheDtype cached = packed(request);
    return cached == KvCacheDtype.FP8_DS_MLA ? plain.caching(cached) : plain;
  }

  /** The type of the cache: records of 4 bits stay what they are. */
  private static KvCacheDtype packed(AttentionRequest request) {
    KvCacheDtype asked = request.layer().kvCacheDtype();
    return LatentCacheTypes.quantized(asked) && asked != KvCacheDtype.NVFP4_DS_MLA
        ? KvCacheDtype.FP8_DS_MLA
        : asked;
  }

  /** Its cache is quantised whatever type it is asked to have. */
  private static Seq<String> sm120Queries(AttentionRequest request) {
    return Option.when(
            Sm.major(request.device()) == WORKSTATION_BLACKWELL && request.layer().choosesKeys(),
            QueryQuantization.NEVER.remark())
        .toVector();
  }

  private static Option<InvalidReason> standardFp8(
      AttentionRequest request, ResolvedVariant variant) {
    KvCacheDtype cache = request.layer().kvCacheDtype();
    return Features.when(
        cache == KvCacheDtype.FP8_DS_MLA,
        ReasonCode.KV_CACHE_DTYPE,
        "FLASHINFER_MLA_SPARSE SM10 does not support fp8_ds_mla kv-cache dtype",
        cache,
        "fp8");
  }

  private static Option<InvalidReason> trtllmNope(
      AttentionRequest request, ResolvedVariant variant) {
    return LatentShape.of(request)
        .map(AttentionLayerSpec.Mla::qkNopeHeadDim)
        .filter(nope -> !TRTLLM_NOPE.contains(nope))
        .map(
            nope ->
                new InvalidReason(
                    ReasonCode.COMBINATION,
                    "FlashInfer MLA Sparse kernel requires qk_nope_head_dim in [128, 192], but got "
                        + nope,
                    String.valueOf(nope),
                    "qk_nope_head_dim of 128 or 192"));
  }

  private static Option<InvalidReason> trtllmTopk(
      AttentionRequest request, ResolvedVariant variant) {
    return needsTopk(request, "FlashInfer MLA Sparse requires model with index_topk config");
  }

  private static Option<InvalidReason> needsTopk(AttentionRequest request, String text) {
    return Features.when(
        LatentShape.indexTopk(request).isEmpty(),
        ReasonCode.COMBINATION,
        text,
        "no index_topk",
        "a model that says index_topk");
  }

  private static Option<InvalidReason> sm120Api(AttentionRequest request, ResolvedVariant variant) {
    return Features.when(
        !KernelPackages.FLASHINFER_SPARSE_MLA.on(request.device()),
        ReasonCode.COMBINATION,
        "FLASHINFER_MLA_SPARSE_SM120 requires FlashInfer's sparse MLA decode API",
        "no flashinfer-sparse-mla",
        "FlashInfer with its sparse MLA decode API");
  }

  private static Option<InvalidReason> sm120Types(
      AttentionRequest request, ResolvedVariant variant) {
    AttentionLayerSpec layer = request.layer();
    return Features.when(
            layer.dtype() != DType.BF16,
            ReasonCode.DTYPE,
            "dtype not supported",
            layer.dtype(),
            "bf16")
        .orElse(
            () ->
                Features.when(
                    !SM120_TYPES.contains(layer.kvCacheDtype()),
                    ReasonCode.KV_CACHE_DTYPE,
                    "kv_cache_dtype not supported",
                    layer.kvCacheDtype(),
                    "auto, fp8, fp8_e4m3, fp8_ds_mla"));
  }

  private static Option<InvalidReason> sm120Topk(
      AttentionRequest request, ResolvedVariant variant) {
    return needsTopk(request, "FLASHINFER_MLA_SPARSE_SM120 requires a model with index_topk config")
        .orElse(
            () ->
                LatentShape.indexTopk(request)
                    .filter(topk -> topk != SM120_TOPK)
                    .map(
                        topk ->
                            new InvalidReason(
                                ReasonCode.COMBINATION,
                                "FLASHINFER_MLA_SPARSE_SM120 requires index_topk=2048; got " + topk,
                                String.valueOf(topk),
                                "index_topk of 2048")));
  }

  private static Option<InvalidReason> sm90Installed(
      AttentionRequest request, ResolvedVariant variant) {
    return Features.when(
        !KernelPackages.FLASHINFER_MLA_SM90.on(request.device()),
        ReasonCode.COMBINATION,
        "FLASHINFER_MLA_SPARSE_SM90 requires FlashInfer with SM90 MLA support (ckv_scale_arr in"
            + " BatchMLAPagedAttentionWrapper.run, FlashInfer >= 0.6.18)",
        "no flashinfer-mla-sm90",
        "FlashInfer 0.6.18 or newer");
  }

  private static Option<InvalidReason> sm90Dimensions(
      AttentionRequest request, ResolvedVariant variant) {
    Option<AttentionLayerSpec.Mla> latent = LatentShape.of(request);
    return Features.when(
            !request.layer().choosesKeys(),
            ReasonCode.SPARSE,
            "FLASHINFER_MLA_SPARSE_SM90 requires sparse MLA",
            "dense",
            "sparse")
        .orElse(
            () ->
                Features.when(
                    latent.exists(mla -> mla.kvLoraRank() != 512),
                    ReasonCode.COMBINATION,
                    "FLASHINFER_MLA_SPARSE_SM90 requires kv_lora_rank=512",
                    latent.map(AttentionLayerSpec.Mla::kvLoraRank).getOrElse(0),
                    "512"))
        .orElse(
            () ->
                Features.when(
                    latent.exists(mla -> mla.qkRopeHeadDim() != 0 && mla.qkRopeHeadDim() != 64),
                    ReasonCode.COMBINATION,
                    "FLASHINFER_MLA_SPARSE_SM90 requires qk_rope_head_dim in (0, 64)",
                    latent.map(AttentionLayerSpec.Mla::qkRopeHeadDim).getOrElse(0),
                    "0 or 64"));
  }

  private static Option<InvalidReason> nvfp4OnBlackwell(
      AttentionRequest request, ResolvedVariant variant) {
    KvCacheDtype cache = request.layer().kvCacheDtype();
    return Features.when(
        cache == KvCacheDtype.NVFP4_DS_MLA && Sm.major(request.device()) != BLACKWELL,
        ReasonCode.KV_CACHE_DTYPE,
        "FLASHMLA_SPARSE only supports the " + cache + " kv-cache dtype on SM100 (Blackwell)",
        request.device().label(),
        "10.x");
  }

  /** Ranks that share a sequence in prefill and in decode exchange packed records. */
  private static Option<InvalidReason> sharedBothWays(
      AttentionRequest request, ResolvedVariant variant) {
    boolean both =
        request.deployment().prefillContextParallel() > 1
            && request.deployment().decodeContextParallel() > 1;
    KvCacheDtype cache = variant.cacheType().getOrElse(request.layer().kvCacheDtype());
    return Features.when(
        both && cache != KvCacheDtype.FP8_DS_MLA,
        ReasonCode.KV_CACHE_DTYPE,
        "FLASHMLA_SPARSE with PCP and DCP requires an fp8_ds_mla KV cache",
        cache,
        "fp8_ds_mla");
  }

  /** The narrow head is that of models without rotary keys, and has a kernel on one device. */
  private static Option<InvalidReason> ropeFreeOnHopper(
      AttentionRequest request, ResolvedVariant variant) {
    AttentionLayerSpec layer = request.layer();
    if (layer.headSize() != ROPE_FREE_HEAD) {
      return Option.none();
    }
    boolean served =
        Sm.major(request.device()) == HOPPER
            && LatentShape.of(request).exists(mla -> mla.qkRopeHeadDim() == 0)
            && ROPE_FREE_TYPES.contains(layer.kvCacheDtype());
    return Features.when(
        !served,
        ReasonCode.COMBINATION,
        "FLASHMLA_SPARSE with head size 512 serves rope-free models on SM90 with a KV cache of"
            + " auto, bfloat16, float16 or fp8_ds_mla",
        request.device().label() + ", " + layer.kvCacheDtype(),
        "head size 576, or a rope-free model on 9.x");
  }

  private static Option<InvalidReason> flashAttentionTypes(
      AttentionRequest request, ResolvedVariant variant) {
    KvCacheDtype cache = request.layer().kvCacheDtype();
    return Features.when(
        !HALVES.contains(cache),
        ReasonCode.KV_CACHE_DTYPE,
        "FlashAttention MLA Sparse currently supports only FP16/BF16 KV cache",
        cache,
        "auto, float16, bfloat16");
  }

  private static Option<InvalidReason> flashAttentionAlone(
      AttentionRequest request, ResolvedVariant variant) {
    int ranks = request.deployment().decodeContextParallel();
    return Features.when(
        ranks > 1,
        ReasonCode.DCP,
        "FlashAttention MLA Sparse does not support DCP for now",
        ranks,
        "1");
  }

  private static Option<InvalidReason> flashAttentionTopk(
      AttentionRequest request, ResolvedVariant variant) {
    return needsTopk(request, "FlashAttention MLA Sparse requires model with index_topk");
  }
}
