package bifocal.rocm.select;

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
import bifocal.core.cache.KvLayouts;
import bifocal.core.device.Platform;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.select.BackendDeclaration;
import bifocal.core.select.FeatureRow;
import bifocal.core.select.FeatureTable;
import bifocal.core.tensor.DType;
import io.vavr.collection.HashMap;
import io.vavr.collection.Map;
import io.vavr.control.Option;

/** The three dense backends of the platform. */
final class RocmRows {
  static final BackendName ROCM_ATTN = BackendName.of("ROCM_ATTN");
  static final BackendName AITER_FLASH = BackendName.of("ROCM_AITER_FA");
  static final BackendName AITER_UNIFIED = BackendName.of("ROCM_AITER_UNIFIED_ATTN");

  private static final int AITER_FLASH_CDNA = 3;
  private static final int UNIFIED_PAGE = 64;

  /** Bytes of local memory that the unified kernel asks for, by head size, where known. */
  private static final Map<Integer, Integer> UNIFIED_LOCAL_MEMORY =
      HashMap.of(128, 49_152, 256, 65_792);

  private static final FeatureSet EVERY_ROW =
      FeatureSet.NONE
          .withDtypes(DType.FP16, DType.BF16)
          .withKvCacheDtypes(
              KvCacheDtype.AUTO,
              KvCacheDtype.FLOAT16,
              KvCacheDtype.BFLOAT16,
              KvCacheDtype.FP8,
              KvCacheDtype.FP8_E4M3,
              KvCacheDtype.FP8_E5M2)
          .withBlockSizes(BlockSizes.multiplesOf(16))
          .withHeadSizes(HeadSizes.ANY)
          .withDevices(DeviceSupport.on(Platform.ROCM));

  private static final FeatureSet ROCM_ATTN_ROW =
      EVERY_ROW
          .withDtypes(DType.FP16, DType.BF16, DType.FP32)
          .withHeadSizes(HeadSizes.exactly(32, 64, 80, 96, 128, 160, 192, 224, 256))
          .withTypes(AttentionType.DECODER, AttentionType.ENCODER, AttentionType.ENCODER_ONLY)
          .withImageMasks(ImageMask.OVERRIDE, ImageMask.CLAMP_PAST)
          .withKvLayouts(KvLayouts.HND)
          .withFeatures(
              Feature.NON_CAUSAL,
              Feature.SLIDING_WINDOW,
              Feature.KV_SCALES,
              Feature.ADAPTIVE_VERIFICATION);

  private static final FeatureSet AITER_FLASH_ROW =
      EVERY_ROW
          .withBlockSizes(BlockSizes.exactly(16, 32))
          .withHeadSizes(HeadSizes.exactly(64, 128, 256))
          .withTypes(AttentionType.DECODER)
          .withKvLayouts(KvLayouts.NHD, KvLayouts.HND)
          .withFeatures(
              Feature.SINK,
              Feature.NON_CAUSAL,
              Feature.SLIDING_WINDOW,
              Feature.KV_SCALES,
              Feature.KV_CONNECTOR,
              Feature.ADAPTIVE_VERIFICATION);

  private static final FeatureSet AITER_UNIFIED_ROW =
      EVERY_ROW
          .withTypes(AttentionType.values())
          .withImageMasks(ImageMask.OVERRIDE, ImageMask.CLAMP_PAST)
          .withKvLayouts(KvLayouts.HND)
          .withFeatures(
              Feature.SINK,
              Feature.SLIDING_WINDOW,
              Feature.KV_SCALES,
              Feature.ADAPTIVE_VERIFICATION);

  private static final Capabilities UNIFIED_SERVES =
      Capabilities.of(
          AITER_UNIFIED_ROW.withHeadSizes(HeadSizes.multiplesOf(1, 32, Integer.MAX_VALUE)));

  static final BackendDeclaration ROCM =
      BackendDeclaration.of(row(ROCM_ATTN, ROCM_ATTN_ROW), GraphSupport.ALWAYS);

  static final BackendDeclaration FLASH =
      BackendDeclaration.of(row(AITER_FLASH, AITER_FLASH_ROW), GraphSupport.UNIFORM_BATCH)
          .but(AiterLibrary::required)
          .but(RocmRows::needsCdna3);

  static final BackendDeclaration UNIFIED =
      BackendDeclaration.of(
              row(AITER_UNIFIED, AITER_UNIFIED_ROW), UNIFIED_SERVES, GraphSupport.ALWAYS)
          .choosing(
              request ->
                  ResolvedVariant.of("", UNIFIED_SERVES, GraphSupport.ALWAYS)
                      .preferringBlocksOf(UNIFIED_PAGE))
          .but(AiterLibrary::required)
          .but(RocmRows::fitsLocalMemory);

  private RocmRows() {}

  private static FeatureRow row(BackendName name, FeatureSet features) {
    return FeatureRow.of(FeatureTable.STANDARD, name, "", features);
  }

  private static Option<InvalidReason> needsCdna3(
      AttentionRequest request, ResolvedVariant variant) {
    return Option.when(
        AmdArchitecture.of(request.device()).cdna() < AITER_FLASH_CDNA,
        () ->
            new InvalidReason(
                ReasonCode.DEVICE,
                "compute capability not supported",
                request.device().label(),
                "CDNA 3 or newer"));
  }

  /** Without matrix pipelines that stream, the kernel keeps its tiles in local memory. */
  private static Option<InvalidReason> fitsLocalMemory(
      AttentionRequest request, ResolvedVariant variant) {
    AmdArchitecture architecture = AmdArchitecture.of(request.device());
    Option<Integer> needed =
        architecture.cdna() > 0
            ? Option.none()
            : UNIFIED_LOCAL_MEMORY.get(request.layer().headSize());
    return needed
        .filter(bytes -> bytes > architecture.localMemory())
        .map(
            bytes ->
                new InvalidReason(
                    ReasonCode.COMBINATION,
                    "the kernel needs "
                        + bytes
                        + " bytes of local memory for head size "
                        + request.layer().headSize()
                        + ", the device has "
                        + architecture.localMemory(),
                    String.valueOf(bytes),
                    "at most " + architecture.localMemory() + " bytes of local memory"));
  }
}
