package bifocal.rocm.select;

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
import bifocal.core.device.Platform;
import bifocal.core.graph.GraphSupport;
import bifocal.core.select.BackendDeclaration;
import bifocal.core.select.FeatureColumn;
import bifocal.core.select.LatentRows;
import bifocal.core.tensor.DType;
import io.vavr.control.Option;

/** The four latent backends of the platform. */
final class LatentRocmRows {
  static final BackendName AITER_MLA = BackendName.of("ROCM_AITER_MLA");
  static final BackendName AITER_TRITON_MLA = BackendName.of("ROCM_AITER_TRITON_MLA");
  static final BackendName AITER_MLA_SPARSE = BackendName.of("ROCM_AITER_MLA_SPARSE");
  static final BackendName DEEPSEEK_V4 = BackendName.of("ROCM_FLASHMLA_SPARSE_DSV4");

  private static final FeatureSet DENSE_ROW =
      LatentRows.plus(LatentRows.DENSE, Feature.DCP, Feature.KV_SCALES)
          .withKvCacheDtypes(
              KvCacheDtype.AUTO,
              KvCacheDtype.FLOAT16,
              KvCacheDtype.BFLOAT16,
              KvCacheDtype.FP8,
              KvCacheDtype.FP8_E4M3,
              KvCacheDtype.FP8_E5M2)
          .withBlockSizes(BlockSizes.multiplesOf(1))
          .withDevices(DeviceSupport.on(Platform.ROCM));

  private static final FeatureSet SPARSE_ROW =
      LatentRows.plus(LatentRows.SPARSE, Feature.KV_SCALES)
          .withKvCacheDtypes(
              KvCacheDtype.AUTO,
              KvCacheDtype.FLOAT16,
              KvCacheDtype.BFLOAT16,
              KvCacheDtype.FP8,
              KvCacheDtype.FP8_E4M3)
          .withBlockSizes(BlockSizes.exactly(1).union(BlockSizes.multiplesOf(16)))
          .withDevices(DeviceSupport.on(Platform.ROCM));

  private static final FeatureSet DEEPSEEK_V4_ROW =
      LatentRows.plus(LatentRows.SPARSE, Feature.SINK, Feature.KV_SCALES)
          .withDtypes(DType.BF16)
          .withKvCacheDtypes(
              KvCacheDtype.AUTO, KvCacheDtype.FP8_DS_MLA, KvCacheDtype.FP8, KvCacheDtype.FP8_E4M3)
          .withBlockSizes(BlockSizes.exactly(256))
          .withHeadSizes(HeadSizes.exactly(512))
          .withKvLayouts(LatentKvLayout.DEEPSEEK_V4)
          .withDevices(DeviceSupport.on(Platform.ROCM));

  static final BackendDeclaration DENSE =
      LatentRows.remarking(
              LatentRows.declare(
                  LatentRows.row(AITER_MLA, DENSE_ROW).spelled(FeatureColumn.BLOCK_SIZES, "%1"),
                  GraphSupport.UNIFORM_BATCH,
                  DecodeThreshold.uniform(1)),
              AiterHeads::remarks)
          .but(AiterLibrary::required)
          .but(LatentRocmRows::headsFillTiles);

  /** Its row prints what a class states by default; the class inherits the rest. */
  static final BackendDeclaration TRITON =
      LatentRows.declare(
              LatentRows.row(AITER_TRITON_MLA, DENSE_ROW)
                  .spelled(FeatureColumn.KV_DTYPES, "auto")
                  .spelled(FeatureColumn.BLOCK_SIZES, "Any"),
              GraphSupport.UNIFORM_BATCH,
              DecodeThreshold.uniform(1))
          .but(AiterLibrary::required)
          .but(LatentRocmRows::headsFillTiles);

  static final BackendDeclaration SPARSE =
      LatentRows.remarking(
              LatentRows.declare(
                  LatentRows.row(AITER_MLA_SPARSE, SPARSE_ROW),
                  GraphSupport.UNIFORM_BATCH,
                  DecodeThreshold.uniform(1)),
              AiterSparseInput::remarks)
          .but(AiterLibrary::required);

  /** As the row above: what is served is what the class inherits. */
  static final BackendDeclaration SPARSE_V4 =
      LatentRows.declare(
              LatentRows.deepSeekV4(DEEPSEEK_V4, DEEPSEEK_V4_ROW)
                  .spelled(FeatureColumn.DTYPES, "fp16, bf16")
                  .spelled(FeatureColumn.KV_DTYPES, "auto")
                  .spelled(FeatureColumn.BLOCK_SIZES, "Any")
                  .spelled(FeatureColumn.HEAD_SIZES, "Any")
                  .spelled(FeatureColumn.SINK, "no")
                  .spelled(FeatureColumn.SPARSE, "no"),
              GraphSupport.UNIFORM_BATCH,
              DecodeThreshold.uniform(1))
          .choosing(LatentRocmRows::packed);

  private LatentRocmRows() {}

  private static ResolvedVariant packed(AttentionRequest request) {
    return ResolvedVariant.of("", Capabilities.of(DEEPSEEK_V4_ROW), GraphSupport.UNIFORM_BATCH)
        .dividing(DecodeThreshold.uniform(1))
        .caching(KvCacheDtype.FP8_DS_MLA);
  }

  /** Fewer heads than a tile are padded to one; more must fill their tiles. */
  private static Option<InvalidReason> headsFillTiles(
      AttentionRequest request, ResolvedVariant variant) {
    int heads = request.layer().numHeads();
    return Option.when(
        !new AiterHeads(heads).runnable(),
        () ->
            new InvalidReason(
                ReasonCode.COMBINATION,
                "ROCM AITER MLA requires 1-15 heads (padded to 16) or a multiple of 16 heads, but"
                    + " got "
                    + heads
                    + ".",
                String.valueOf(heads),
                "at most 15 query heads, or a multiple of 16"));
  }
}
