package bifocal.cpu.select;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.InvalidReason;
import bifocal.core.cache.KvCacheDtype;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** What calls of the host's latent backends are made of. */
class CpuLatentCallsTest {

  @ParameterizedTest(name = "{0} keys, {1} threads: {2} parts")
  @CsvSource({
    "0, 8, 1",
    "1, 8, 1",
    "512, 8, 1",
    "513, 8, 2",
    "1024, 8, 2",
    "1025, 8, 4",
    "1536, 8, 4",
    "8192, 8, 16",
    "8704, 8, 16",
    "8192, 4, 8",
  })
  void decodesOnTilesCutKeysByThreads(int longest, int threads, int parts) {
    assertThat(AmxLatent.splits(longest, threads)).isEqualTo(parts);
  }

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "AUTO")
  void theCacheOnTilesIsOfTheModelsOwnType(KvCacheDtype asked) {
    assertThat(AmxLatent.cacheType(asked).map(InvalidReason::text))
        .contains("AMX_MLA takes no kv_cache_dtype but auto, got " + asked.label());
  }

  @Test
  void anUnnamedTypeOfCacheIsWritten() {
    assertThat(AmxLatent.cacheType(KvCacheDtype.AUTO)).isEmpty();
  }

  @Test
  void thePlainBackendTakesWholePromptsIntoBlocksOfSixteen() {
    assertThat(CpuLatentEngine.CPU_MLA).isEqualTo(new CpuLatentEngine(16, false, false));
  }
}
