package bifocal.cuda.select;

import bifocal.core.backend.BackendName;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.Platform;
import bifocal.core.graph.GraphSupport;
import bifocal.core.select.BackendDeclaration;

/** {@code TURBOQUANT}: caches of a few bits per number. It declares no windows. */
final class TurboQuant {
  static final BackendName NAME = BackendName.of("TURBOQUANT");

  private static final FeatureSet ROW =
      Features.DECODER
          .withKvCacheDtypes(
              KvCacheDtype.TURBOQUANT_K8V4,
              KvCacheDtype.TURBOQUANT_4BIT_NC,
              KvCacheDtype.TURBOQUANT_K3V4_NC,
              KvCacheDtype.TURBOQUANT_3BIT_NC)
          .withBlockSizes(BlockSizes.exactly(16, 32, 64, 128))
          .withFeatures(Feature.KV_CONNECTOR, Feature.ADAPTIVE_VERIFICATION)
          .withKvLayouts(PackedKvLayouts.TURBOQUANT)
          .withDevices(DeviceSupport.on(Platform.CUDA, Platform.ROCM, Platform.XPU));

  static final BackendDeclaration DECLARATION =
      BackendDeclaration.of(Features.standard(NAME, ROW), GraphSupport.UNIFORM_BATCH);

  private TurboQuant() {}
}
