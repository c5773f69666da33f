package bifocal.xpu.select;

import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.cache.KvCacheDtype;
import io.vavr.collection.LinkedHashSet;
import io.vavr.collection.Set;
import io.vavr.control.Option;

/** What the kernels of {@code XPU_MLA_SPARSE} say of a cache. */
public final class XpuSparseCache {
  private static final Set<KvCacheDtype> PLAIN =
      LinkedHashSet.of(
          KvCacheDtype.AUTO, KvCacheDtype.FLOAT32, KvCacheDtype.FLOAT16, KvCacheDtype.BFLOAT16);

  private XpuSparseCache() {}

  /** What speaks against a quantised cache. */
  public static Option<InvalidReason> type(KvCacheDtype cached) {
    return Option.when(
        !PLAIN.contains(cached),
        () ->
            new InvalidReason(
                ReasonCode.KV_CACHE_DTYPE,
                "FP8 kv is not supported with XPU MLA Sparse yet",
                cached,
                PLAIN));
  }
}
