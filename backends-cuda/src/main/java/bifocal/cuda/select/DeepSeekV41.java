package bifocal.cuda.select;

import bifocal.core.backend.BackendName;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.graph.GraphSupport;
import bifocal.core.select.BackendDeclaration;

/** Two backends of DeepSeek V4.1, which stand in the standard table although they are latent. */
final class DeepSeekV41 {
  static final BackendName MEGA = BackendName.of("FLASHMLA_MEGA_ATTN_DSV41");
  static final BackendName SPARSE = BackendName.of("FLASHMLA_SPARSE_DSV41");

  private static final FeatureSet LATENT =
      Features.DECODER.withFeatures(
          Feature.MLA, Feature.SPARSE, Feature.KV_CONNECTOR, Feature.ADAPTIVE_VERIFICATION);

  static final BackendDeclaration MEGA_ATTN =
      BackendDeclaration.of(
          Features.standard(
              MEGA,
              LATENT
                  .withKvCacheDtypes(
                      KvCacheDtype.AUTO,
                      KvCacheDtype.FP8_DS_MLA,
                      KvCacheDtype.FP8,
                      KvCacheDtype.NVFP4_DS_MLA)
                  .withBlockSizes(BlockSizes.exactly(128))
                  .withDevices(DeviceSupport.cuda(DeviceSupport.Range.majors(10, 10)))),
          GraphSupport.NEVER);

  static final BackendDeclaration FLASHMLA_SPARSE =
      BackendDeclaration.of(
          Features.standard(SPARSE, LATENT.withDevices(DeviceSupport.cuda())), GraphSupport.NEVER);

  private DeepSeekV41() {}
}
