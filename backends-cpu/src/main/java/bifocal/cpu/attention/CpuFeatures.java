package bifocal.cpu.attention;

import bifocal.core.backend.Capabilities;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvLayouts;
import bifocal.core.device.Platform;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import bifocal.cpu.cache.CpuPackedLayout;
import bifocal.cpu.kernel.HeadPath;

/**
 * What the two CPU backends declare: the rows of the reference tables, and what runs beyond them.
 */
final class CpuFeatures {
  /** What the kernels can do, whichever backend calls them. */
  private static final FeatureSet KERNELS =
      FeatureSet.NONE
          .withDtypes(DType.FP16, DType.BF16, DType.FP32)
          .withKvCacheDtypes(
              KvCacheDtype.AUTO,
              KvCacheDtype.FLOAT32,
              KvCacheDtype.FLOAT16,
              KvCacheDtype.BFLOAT16,
              KvCacheDtype.FP8,
              KvCacheDtype.FP8_E4M3,
              KvCacheDtype.FP8_E5M2,
              KvCacheDtype.INT8_PER_TOKEN_HEAD,
              KvCacheDtype.FP8_PER_TOKEN_HEAD)
          .withBlockSizes(BlockSizes.multiplesOf(CpuPackedLayout.TOKENS))
          .withHeadSizes(HeadPath.headSizes())
          .withTypes(
              AttentionType.DECODER,
              AttentionType.ENCODER,
              AttentionType.ENCODER_ONLY,
              AttentionType.ENCODER_DECODER)
          .withKvLayouts(CpuPackedLayout.INSTANCE)
          .withDevices(DeviceSupport.on(Platform.CPU));

  static final Capabilities CPU_ATTN =
      new Capabilities(
          FeatureSet.NONE
              .withDtypes(DType.FP16, DType.BF16, DType.FP32)
              .withKvCacheDtypes(
                  KvCacheDtype.AUTO, KvCacheDtype.FP8, KvCacheDtype.FP8_E4M3, KvCacheDtype.FP8_E5M2)
              .withBlockSizes(BlockSizes.multiplesOf(32))
              .withHeadSizes(HeadSizes.exactly(32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512))
              .withTypes(
                  AttentionType.DECODER,
                  AttentionType.ENCODER,
                  AttentionType.ENCODER_ONLY,
                  AttentionType.ENCODER_DECODER)
              .withFeatures(
                  Feature.NON_CAUSAL,
                  Feature.SLIDING_WINDOW,
                  Feature.SOFTCAP,
                  Feature.ALIBI,
                  Feature.KV_SCALES,
                  Feature.KV_CONNECTOR,
                  Feature.ADAPTIVE_VERIFICATION)
              .withKvLayouts(CpuPackedLayout.INSTANCE)
              .withDevices(DeviceSupport.on(Platform.CPU)),
          KERNELS.withFeatures(
              Feature.SINK,
              Feature.NON_CAUSAL_LEFT_WINDOW,
              Feature.RIGHT_WINDOW,
              Feature.HEAD_SIZE_V,
              Feature.PER_HEAD_QUANT_SCALES,
              Feature.BATCH_INVARIANCE,
              Feature.LSE,
              Feature.INDIRECT_REQUESTS));

  /** The row of the reference table; its device is a GPU. */
  private static final FeatureSet FLEX_REFERENCE =
      FeatureSet.NONE
          .withDtypes(DType.FP16, DType.BF16, DType.FP32)
          .withKvCacheDtypes(KvCacheDtype.AUTO, KvCacheDtype.FLOAT16, KvCacheDtype.BFLOAT16)
          .withBlockSizes(BlockSizes.multiplesOf(16))
          .withHeadSizes(HeadSizes.ANY)
          .withTypes(AttentionType.DECODER, AttentionType.ENCODER_ONLY)
          .withImageMasks(ImageMask.OVERRIDE, ImageMask.CLAMP_PAST)
          .withFeatures(
              Feature.NON_CAUSAL,
              Feature.SLIDING_WINDOW,
              Feature.BATCH_INVARIANCE,
              Feature.RSWA,
              Feature.KV_CONNECTOR,
              Feature.ADAPTIVE_VERIFICATION)
          .withKvLayouts(KvLayouts.NHD)
          .withDevices(DeviceSupport.on(Platform.CUDA, Platform.ROCM));

  private static final FeatureSet FLEX_EXTENSIONS =
      KERNELS
          .withImageMasks(ImageMask.OVERRIDE, ImageMask.CLAMP_PAST, ImageMask.CLAMP_BOTH)
          .withFeatures(
              Feature.NON_CAUSAL,
              Feature.SLIDING_WINDOW,
              Feature.BATCH_INVARIANCE,
              Feature.KV_CONNECTOR,
              Feature.ADAPTIVE_VERIFICATION,
              Feature.SINK,
              Feature.NON_CAUSAL_LEFT_WINDOW,
              Feature.RIGHT_WINDOW,
              Feature.CHUNKED_LOCAL,
              Feature.SOFTCAP,
              Feature.ALIBI,
              Feature.HEAD_SIZE_V,
              Feature.KV_SCALES,
              Feature.PER_HEAD_QUANT_SCALES,
              Feature.LSE,
              Feature.INDIRECT_REQUESTS);

  /** Everything that FLEX_ATTENTION is said to do anywhere. */
  static final Capabilities FLEX_ATTENTION = new Capabilities(FLEX_REFERENCE, FLEX_EXTENSIONS);

  /** FLEX_ATTENTION on the CPU: all of it is an extension. */
  static final Capabilities FLEX_ON_CPU = new Capabilities(FeatureSet.NONE, FLEX_EXTENSIONS);

  /** FLEX_ATTENTION elsewhere: the reference row. */
  static final Capabilities FLEX_ELSEWHERE = Capabilities.of(FLEX_REFERENCE);

  private CpuFeatures() {}
}
