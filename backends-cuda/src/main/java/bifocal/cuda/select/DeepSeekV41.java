package bifocal.cuda.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.DecodeThreshold;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.backend.ResolvedVariant;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.LatentKvLayout;
import bifocal.core.device.DeviceProfile;
import bifocal.core.graph.GraphSupport;
import bifocal.core.select.BackendDeclaration;
import bifocal.core.select.FeatureColumn;
import bifocal.core.select.LatentRows;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * Backends of DeepSeek V4.1. Two of them stand in the standard table although they are latent, with
 * what a class states by default; what they serve is what they inherit.
 */
final class DeepSeekV41 {
  static final BackendName MEGA = BackendName.of("FLASHMLA_MEGA_ATTN_DSV41");
  static final BackendName SPARSE = BackendName.of("FLASHMLA_SPARSE_DSV41");
  static final BackendName FLASHINFER_NAME = BackendName.of("FLASHINFER_MLA_SPARSE_DSV41");

  private static final int BLACKWELL = 10;
  private static final int MEGA_HEADS = 8;
  private static final int WORKSTATION_BLACKWELL = 12;

  /** Only one generation of devices reads the records of this generation of the model. */
  private static final FeatureSet MEGA_ROW =
      DeepSeekV4.SHARED
          .withKvCacheDtypes(
              KvCacheDtype.AUTO,
              KvCacheDtype.FP8_DS_MLA,
              KvCacheDtype.FP8,
              KvCacheDtype.NVFP4_DS_MLA)
          .withBlockSizes(BlockSizes.exactly(128))
          .withKvLayouts(LatentKvLayout.DEEPSEEK_V41_NVFP4, LatentKvLayout.DEEPSEEK_V41)
          .withDevices(DeviceSupport.cuda(DeviceSupport.Range.majors(10, 10)));

  private static final FeatureSet FLASHMLA_ROW =
      DeepSeekV4.SHARED
          .withKvCacheDtypes(
              KvCacheDtype.AUTO,
              KvCacheDtype.FP8_DS_MLA,
              KvCacheDtype.FP8,
              KvCacheDtype.FP8_E4M3,
              KvCacheDtype.BFLOAT16)
          .withBlockSizes(BlockSizes.exactly(64, 128))
          .withKvLayouts(LatentKvLayout.DEEPSEEK_V41, LatentKvLayout.DEEPSEEK_V4)
          .withDevices(DeviceSupport.cuda(DeviceSupport.Range.majors(9, 10)));

  private static final Capabilities FLASHMLA_ON_HOPPER =
      Capabilities.of(
          FLASHMLA_ROW
              .withBlockSizes(BlockSizes.exactly(64))
              .withKvLayouts(LatentKvLayout.DEEPSEEK_V4));
  private static final Capabilities FLASHMLA_ELSEWHERE =
      Capabilities.of(
          FLASHMLA_ROW
              .withBlockSizes(BlockSizes.exactly(128))
              .withKvLayouts(LatentKvLayout.DEEPSEEK_V41));

  private static final FeatureSet FLASHINFER_ROW =
      DeepSeekV4.SHARED
          .withKvCacheDtypes(
              KvCacheDtype.AUTO,
              KvCacheDtype.BFLOAT16,
              KvCacheDtype.FP8,
              KvCacheDtype.FP8_E4M3,
              KvCacheDtype.FP8_DS_MLA)
          .withBlockSizes(BlockSizes.exactly(128))
          .withKvLayouts(LatentKvLayout.ROWS_PAGED_512, LatentKvLayout.DEEPSEEK_V4)
          .withDevices(
              DeviceSupport.cuda(
                  DeviceSupport.Range.majors(10, 10), DeviceSupport.Range.majors(12, 12)));

  private static final Capabilities FLASHINFER_ELSEWHERE = Capabilities.of(FLASHINFER_ROW);
  private static final Capabilities FLASHINFER_ON_12 =
      Capabilities.of(FLASHINFER_ROW.withBlockSizes(BlockSizes.exactly(64, 128)));

  static final BackendDeclaration MEGA_ATTN =
      LatentRows.declare(
              Features.standard(MEGA, MEGA_ROW)
                  .spelled(FeatureColumn.DTYPES, "fp16, bf16")
                  .spelled(FeatureColumn.HEAD_SIZES, "Any")
                  .spelled(FeatureColumn.SINK, "no"),
              GraphSupport.ALWAYS,
              DecodeThreshold.uniform(1))
          .choosing(DeepSeekV41::mega)
          .but(DeepSeekV41::megaBuilt);

  static final BackendDeclaration FLASHMLA_SPARSE =
      LatentRows.declare(
              Features.standard(SPARSE, FLASHMLA_ROW)
                  .spelled(FeatureColumn.DTYPES, "fp16, bf16")
                  .spelled(FeatureColumn.KV_DTYPES, "auto")
                  .spelled(FeatureColumn.BLOCK_SIZES, "Any")
                  .spelled(FeatureColumn.HEAD_SIZES, "Any")
                  .spelled(FeatureColumn.SINK, "no")
                  .spelled(FeatureColumn.COMPUTE_CAPABILITY, "Any"),
              GraphSupport.ALWAYS,
              DecodeThreshold.uniform(1))
          .choosing(DeepSeekV41::flashMla)
          .but(DeepSeekV4::packedTypes);

  static final BackendDeclaration FLASHINFER =
      LatentRows.declare(
              LatentRows.row(FLASHINFER_NAME, FLASHINFER_ROW),
              GraphSupport.ALWAYS,
              DecodeThreshold.uniform(1))
          .choosing(DeepSeekV41::flashInfer)
          .but(DeepSeekV4::flashInferOnDevice);

  private DeepSeekV41() {}

  private static ResolvedVariant variant(AttentionRequest request, Capabilities capabilities) {
    return ResolvedVariant.of("", capabilities, GraphSupport.ALWAYS)
        .dividing(DecodeThreshold.uniform(1))
        .noting(
            Vector.of("the indexer's side cache has pages of " + indexerPages(request.device())));
  }

  /** Compressed entries are stored in four bits. */
  private static ResolvedVariant mega(AttentionRequest request) {
    return variant(request, Capabilities.of(MEGA_ROW)).caching(KvCacheDtype.NVFP4_DS_MLA);
  }

  private static ResolvedVariant flashMla(AttentionRequest request) {
    ResolvedVariant variant =
        variant(
            request,
            Sm.major(request.device()) == BLACKWELL ? FLASHMLA_ELSEWHERE : FLASHMLA_ON_HOPPER);
    return LatentCacheTypes.packable(request.layer().kvCacheDtype())
        ? variant.caching(KvCacheDtype.FP8_DS_MLA)
        : variant;
  }

  private static ResolvedVariant flashInfer(AttentionRequest request) {
    boolean packed =
        LatentCacheTypes.packedByFlashInfer(request.device())
            && LatentCacheTypes.packable(request.layer().kvCacheDtype());
    ResolvedVariant variant =
        variant(
            request,
            Sm.major(request.device()) == WORKSTATION_BLACKWELL
                ? FLASHINFER_ON_12
                : FLASHINFER_ELSEWHERE);
    return packed ? variant.caching(KvCacheDtype.FP8_DS_MLA) : variant;
  }

  private static Option<InvalidReason> megaBuilt(
      AttentionRequest request, ResolvedVariant variant) {
    return FlashMlaLibrary.sparse(request.device())
        .orElse(
            () ->
                Features.when(
                    Sm.major(request.device()) != BLACKWELL,
                    ReasonCode.DEVICE,
                    "FlashMLA mega attention requires sm_10x GPUs.",
                    request.device().label(),
                    "10.x"))
        .orElse(
            () ->
                Features.when(
                    !KernelPackages.FLASHMLA_MEGA.on(request.device()),
                    ReasonCode.COMBINATION,
                    "vllm._flashmla_C was built without the mega attention ops.",
                    "no flashmla-mega",
                    "FlashMLA with its mega attention"))
        .orElse(
            () ->
                Features.when(
                    !KernelPackages.FLASHMLA_MEGA_PERMUTE.on(request.device()),
                    ReasonCode.COMBINATION,
                    "vllm._flashmla_C predates the mega attention weight permutes.",
                    "no flashmla-mega-permute",
                    "a newer FlashMLA"))
        .orElse(() -> megaHeads(request.layer().numHeads()));
  }

  /** Heads of one rank are projected back in groups. */
  private static Option<InvalidReason> megaHeads(int heads) {
    return Features.when(
        heads % MEGA_HEADS != 0,
        ReasonCode.COMBINATION,
        "mega attention needs the local head count ("
            + heads
            + ") to be a multiple of "
            + MEGA_HEADS
            + ".",
        heads,
        "a multiple of " + MEGA_HEADS + " query heads");
  }

  /**
   * Pages of the side cache in which the model's indexer keeps its keys. They are not those of the
   * model's own cache.
   */
  static BlockSizes indexerPages(DeviceProfile device) {
    return switch (Sm.major(device)) {
      case BLACKWELL -> BlockSizes.exactly(128);
      case WORKSTATION_BLACKWELL -> BlockSizes.exactly(64, 128);
      default -> BlockSizes.exactly(64);
    };
  }
}
