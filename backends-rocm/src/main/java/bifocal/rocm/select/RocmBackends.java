package bifocal.rocm.select;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.select.DeclaredBackend;
import bifocal.core.select.PlatformPolicy;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/** All backends of the platform. */
public final class RocmBackends {
  private static final String HIP = "HIP_PACK: these kernels, built for this architecture";
  private static final String AITER = "AITER_LIBRARY: AMD's kernels behind a C interface";

  private RocmBackends() {}

  /** Every backend. */
  public static Seq<AttentionBackend<?>> all() {
    return Vector.of(
        DeclaredBackend.needing(HIP, RocmRows.ROCM),
        DeclaredBackend.needing(AITER, RocmRows.FLASH),
        DeclaredBackend.needing(AITER, RocmRows.UNIFIED),
        DeclaredBackend.needing(AITER, LatentRocmRows.DENSE),
        DeclaredBackend.needing(AITER, LatentRocmRows.TRITON),
        DeclaredBackend.needing(AITER, LatentRocmRows.SPARSE),
        DeclaredBackend.needing(
            "FLASHMLA_LIBRARY: FlashMLA's kernels for AMD devices", LatentRocmRows.SPARSE_V4));
  }

  /** How the platform chooses. */
  public static PlatformPolicy policy() {
    return new RocmPolicy(RocmLatentPolicy::plan);
  }
}
