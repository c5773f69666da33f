package bifocal.xpu.select;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.DecodeThreshold;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.device.Platform;
import bifocal.core.graph.GraphSupport;
import bifocal.core.select.DeclaredBackend;
import bifocal.core.select.FeatureColumn;
import bifocal.core.select.LatentRows;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/** The backend that only this platform declares. */
public final class XpuBackends {
  private static final FeatureSet SPARSE_ROW =
      LatentRows.SPARSE
          .withHeadSizes(HeadSizes.exactly(576))
          .withDevices(DeviceSupport.on(Platform.XPU));

  private XpuBackends() {}

  /** Every backend. */
  public static Seq<AttentionBackend<?>> all() {
    return Vector.of(
        DeclaredBackend.needing(
            "XPU_LIBRARY: sparse latent kernels for Intel devices",
            LatentRows.declare(
                    LatentRows.row(BackendName.of("XPU_MLA_SPARSE"), SPARSE_ROW)
                        .spelled(FeatureColumn.COMPUTE_CAPABILITY, "Any"),
                    GraphSupport.NEVER,
                    DecodeThreshold.single())
                .but((request, variant) -> XpuSparseCache.type(request.layer().kvCacheDtype()))));
  }
}
