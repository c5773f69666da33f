package bifocal.core.cache;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.BifocalException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Records of latent caches, by their bytes. */
class LatentKvLayoutTest {

  private static LatentKvLayout layout(String name) {
    return switch (name) {
      case "FP8_DS_MLA" -> LatentKvLayout.FP8_DS_MLA;
      case "NVFP4_DS_MLA" -> LatentKvLayout.NVFP4_DS_MLA;
      case "DEEPSEEK_V4" -> LatentKvLayout.DEEPSEEK_V4;
      case "DEEPSEEK_V41" -> LatentKvLayout.DEEPSEEK_V41;
      case "DEEPSEEK_V41_NVFP4" -> LatentKvLayout.DEEPSEEK_V41_NVFP4;
      case "ROWS_PAGED_512" -> LatentKvLayout.ROWS_PAGED_512;
      default -> LatentKvLayout.ROWS;
    };
  }

  private static KvCacheSpec spec(
      LatentKvLayout layout, KvCacheDtype dtype, int block, int rank, int head) {
    return new KvCacheSpec(layout, dtype, block, 1, head, rank, KvScales.ONE);
  }

  @ParameterizedTest
  @CsvSource({
    "FP8_DS_MLA, FP8_DS_MLA, 512, 576, 656",
    "DEEPSEEK_V4, FP8_DS_MLA, 448, 512, 584",
    "DEEPSEEK_V41, FP8_DS_MLA, 448, 512, 528",
    "DEEPSEEK_V41_NVFP4, NVFP4_DS_MLA, 448, 512, 288",
    "NVFP4_DS_MLA, NVFP4_DS_MLA, 512, 576, 352",
    "ROWS, BFLOAT16, 512, 576, 1152",
    "ROWS, FP8_E4M3, 512, 576, 576",
    "ROWS_PAGED_512, BFLOAT16, 448, 512, 1024",
  })
  void bytesOfOneToken(String name, KvCacheDtype dtype, int rank, int head, int bytes) {
    LatentKvLayout layout = layout(name);
    KvCacheSpec spec = spec(layout, dtype, 64, rank, head);

    assertThat(layout.objection(spec)).isEmpty();
    assertThat(layout.recordBytes(spec)).isEqualTo(bytes);
  }

  @ParameterizedTest
  @CsvSource({
    "FP8_DS_MLA, FP8_DS_MLA, 512, 576, 64, 64, 41984",
    "DEEPSEEK_V4, FP8_DS_MLA, 448, 512, 256, 64, 37440",
    "DEEPSEEK_V4, FP8_DS_MLA, 448, 512, 256, 2, 1728",
    "DEEPSEEK_V4, FP8_DS_MLA, 448, 512, 64, 64, 37440",
    "DEEPSEEK_V41, FP8_DS_MLA, 448, 512, 128, 127, 67072",
    "ROWS_PAGED_512, FP8_E4M3, 448, 512, 256, 2, 1024",
    "ROWS, BFLOAT16, 512, 576, 16, 16, 18432",
  })
  void bytesOfAPage(
      String name, KvCacheDtype dtype, int rank, int head, int block, int records, long bytes) {
    LatentKvLayout layout = layout(name);

    assertThat(layout.pageBytes(spec(layout, dtype, block, rank, head), records)).isEqualTo(bytes);
  }

  @ParameterizedTest
  @CsvSource({
    "FP8_DS_MLA, FP8_DS_MLA, 256, 320, kv_lora_rank must be 512 for fp8_ds_mla",
    "FP8_DS_MLA, FP8_DS_MLA, 512, 512, pe_dim must be 64 for fp8_ds_mla",
    "FP8_DS_MLA, BFLOAT16, 512, 576, it does not hold bfloat16",
    "DEEPSEEK_V4, FP8_DS_MLA, 512, 576, its records are 512 numbers wide",
    "ROWS, FP8_DS_MLA, 512, 576, it does not hold fp8_ds_mla",
  })
  void whatARecordCannotHold(
      String name, KvCacheDtype dtype, int rank, int head, String objection) {
    LatentKvLayout layout = layout(name);

    assertThat(layout.objection(spec(layout, dtype, 64, rank, head))).contains(objection);
  }

  @Test
  void aValueIsTheFrontOfItsKey() {
    KvCacheSpec spec = spec(LatentKvLayout.ROWS, KvCacheDtype.FLOAT32, 4, 3, 5);
    float[] key = {1, 2, 3, 4, 5};
    float[] value = new float[3];
    float[] read = new float[5];
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment block = arena.allocate(spec.blockBytes(), 8);
      LatentKvLayout.ROWS.write(spec, block, 2, 0, key, new float[3]);
      LatentKvLayout.ROWS.readKey(spec, block, 2, 0, read);
      LatentKvLayout.ROWS.readValue(spec, block, 2, 0, value);
    }

    assertThat(read).containsExactly(key);
    assertThat(value).containsExactly(1, 2, 3);
  }

  @Test
  void packedRecordsAreCountedAndNotRead() {
    KvCacheSpec spec = spec(LatentKvLayout.FP8_DS_MLA, KvCacheDtype.FP8_DS_MLA, 64, 512, 576);

    assertThatThrownBy(
            () -> LatentKvLayout.FP8_DS_MLA.readKey(spec, MemorySegment.NULL, 0, 0, new float[576]))
        .isInstanceOf(BifocalException.class);
  }
}
