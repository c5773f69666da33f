package bifocal.xpu.select;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.InvalidReason;
import bifocal.core.cache.KvCacheDtype;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Types of cache of the sparse latent backend. */
class XpuSparseCacheTest {

  @ParameterizedTest
  @EnumSource(names = {"FP8", "FP8_E4M3", "FP8_E5M2", "FP8_DS_MLA"})
  void quantisedCachesAreRefusedToTheLetter(KvCacheDtype cached) {
    assertThat(XpuSparseCache.type(cached).map(InvalidReason::text))
        .contains("FP8 kv is not supported with XPU MLA Sparse yet");
  }

  @ParameterizedTest
  @EnumSource(names = {"AUTO", "FLOAT32", "FLOAT16", "BFLOAT16"})
  void plainCachesAreServed(KvCacheDtype cached) {
    assertThat(XpuSparseCache.type(cached)).isEmpty();
  }
}
