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
import bifocal.core.select.FeatureRow;
import bifocal.core.select.FeatureTable;
import bifocal.core.tensor.DType;

/**
 * {@code MINIMAX_M3_SPARSE}, and two names of its decode kernels. Their rows print what a class
 * states by default; what they serve is what they inherit.
 */
final class MiniMaxM3 {
  static final BackendName NAME = BackendName.of("MINIMAX_M3_SPARSE");
  static final BackendName CUTLASS = BackendName.of("CUTLASS_MSA");
  static final BackendName TRITON = BackendName.of("TRITON_MSA");

  private static final FeatureSet ROW =
      Features.DECODER
          .withDtypes(DType.BF16, DType.FP16)
          .withKvCacheDtypes(
              KvCacheDtype.BFLOAT16, KvCacheDtype.FP8, KvCacheDtype.FP8_E4M3, KvCacheDtype.FP8_E5M2)
          .withBlockSizes(BlockSizes.exactly(128))
          .withHeadSizes(HeadSizes.exactly(128))
          .withFeatures(
              Feature.SPARSE,
              Feature.KV_SCALES,
              Feature.KV_CONNECTOR,
              Feature.ADAPTIVE_VERIFICATION)
          .withDevices(DeviceSupport.on(Platform.CUDA, Platform.ROCM));

  private static final FeatureSet DEFAULTS =
      Features.DECODER
          .withFeatures(Feature.SPARSE, Feature.KV_CONNECTOR, Feature.ADAPTIVE_VERIFICATION)
          .withDevices(DeviceSupport.cuda());

  static final BackendDeclaration SPARSE =
      BackendDeclaration.of(
          FeatureRow.of(FeatureTable.MINIMAX_M3, NAME, "", ROW), GraphSupport.UNIFORM_BATCH);
  static final BackendDeclaration CUTLASS_MSA = named(CUTLASS);
  static final BackendDeclaration TRITON_MSA = named(TRITON);

  private MiniMaxM3() {}

  private static BackendDeclaration named(BackendName name) {
    return BackendDeclaration.of(
        Features.standard(name, DEFAULTS), Capabilities.of(ROW), GraphSupport.UNIFORM_BATCH);
  }
}
