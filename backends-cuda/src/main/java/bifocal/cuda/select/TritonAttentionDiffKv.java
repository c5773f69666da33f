package bifocal.cuda.select;

import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.Platform;
import bifocal.core.graph.GraphSupport;
import bifocal.core.select.BackendDeclaration;
import bifocal.core.tensor.DType;

/**
 * {@code TRITON_ATTN_DIFFKV}: {@code TRITON_ATTN} over keys and values of different widths. What it
 * inherits beyond its row counts as an extension.
 */
final class TritonAttentionDiffKv {
  static final BackendName NAME = BackendName.of("TRITON_ATTN_DIFFKV");

  private static final FeatureSet ROW =
      Features.DECODER
          .withKvCacheDtypes(KvCacheDtype.AUTO, KvCacheDtype.BFLOAT16)
          .withFeatures(
              Feature.HEAD_SIZE_V,
              Feature.SLIDING_WINDOW,
              Feature.KV_CONNECTOR,
              Feature.ADAPTIVE_VERIFICATION)
          .withDevices(DeviceSupport.on(Platform.CUDA, Platform.ROCM, Platform.XPU));

  private static final FeatureSet INHERITED =
      FeatureSet.NONE
          .withDtypes(DType.FP32)
          .withFeatures(
              Feature.SINK,
              Feature.NON_CAUSAL,
              Feature.BATCH_INVARIANCE,
              Feature.SOFTCAP,
              Feature.ALIBI,
              Feature.ALIBI_SQRT);

  static final BackendDeclaration DECLARATION =
      BackendDeclaration.of(
          Features.standard(NAME, ROW),
          new Capabilities(
              ROW.withBlockSizes(BlockSizes.multiplesOf(16))
                  .withHeadSizes(HeadSizes.multiplesOf(1, 32, Integer.MAX_VALUE)),
              INHERITED),
          GraphSupport.ALWAYS);

  private TritonAttentionDiffKv() {}
}
