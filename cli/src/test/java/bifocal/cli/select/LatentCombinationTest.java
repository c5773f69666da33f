package bifocal.cli.select;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ResolvesVariants;
import bifocal.core.cache.KvCacheDtype;
import io.vavr.control.Option;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What combinations latent backends object to, asked beside their tables. */
class LatentCombinationTest {
  private static final String ROPE_FREE = "--kv-lora-rank 512 --qk-rope-head-dim 0";
  private static final String ROTARY_512 = "--kv-lora-rank 448 --qk-rope-head-dim 64";
  private static final String WIDE = "--head-size 576";

  @BeforeAll
  static void needsEveryPlatform() {
    Asking.requireAllInstalled();
  }

  private static AttentionBackend<?> backend(String name) {
    return Asking.SELECTOR.registry().snapshot().find(BackendName.of(name)).get();
  }

  private static Option<String> objection(String name, String arguments) {
    return backend(name)
        .checkCombination(Asking.request("--use-mla --use-sparse " + arguments).asked())
        .map(InvalidReason::text);
  }

  private static String layer(String head) {
    return switch (head) {
      case "rope-free" -> ROPE_FREE;
      case "rotary" -> ROTARY_512;
      default -> WIDE;
    };
  }

  @ParameterizedTest(name = "{0} on {1} with {2}: {3}")
  @CsvSource({
    "rope-free, 9.0, auto, none",
    "rope-free, 9.0, bfloat16, none",
    "rope-free, 9.0, float16, none",
    "rope-free, 9.0, fp8_ds_mla, none",
    "rotary, 9.0, auto, rope-free",
    "rotary, 9.0, bfloat16, rope-free",
    "rotary, 9.0, float16, rope-free",
    "rotary, 9.0, fp8_ds_mla, rope-free",
    "rope-free, 10.0, auto, FLASHMLA_SPARSE",
    "rope-free, 10.0, bfloat16, FLASHMLA_SPARSE",
    "rope-free, 10.0, float16, FLASHMLA_SPARSE",
    "rope-free, 10.0, fp8_ds_mla, FLASHMLA_SPARSE",
    "rope-free, 9.0, fp8, FLASHMLA_SPARSE",
    "rope-free, 9.0, fp8_e4m3, FLASHMLA_SPARSE",
    "rope-free, 9.0, nvfp4_ds_mla, FLASHMLA_SPARSE",
    "wide, 9.0, auto, none",
    "wide, 9.0, bfloat16, none",
    "wide, 9.0, fp8, none",
    "wide, 9.0, fp8_ds_mla, none",
    "wide, 10.0, auto, none",
    "wide, 10.0, bfloat16, none",
    "wide, 10.0, fp8, none",
    "wide, 10.0, fp8_ds_mla, none",
    "wide, 9.0, nvfp4_ds_mla, SM100",
    "wide, 10.0, nvfp4_ds_mla, none",
  })
  void narrowHeadsOfFlashMlaSparse(String head, String capability, String cache, String expected) {
    Option<String> objection =
        objection(
            "FLASHMLA_SPARSE",
            "--capability "
                + capability
                + " --block-size 64 --kv-cache-dtype "
                + cache
                + " "
                + layer(head));

    if (expected.equals("none")) {
      assertThat(objection).isEmpty();
    } else {
      assertThat(objection.get()).contains(expected);
    }
  }

  @Test
  void flashMlaSparseListsItsHeadsAsTheReferenceDoes() {
    assertThat(backend("FLASHMLA_SPARSE").capabilities().all().headSizes().toString())
        .isEqualTo("576, 512");
  }

  @Test
  void flashMlaSparseHasTwoPackedFormats() {
    FeatureSet features = backend("FLASHMLA_SPARSE").capabilities().all();

    assertThat(features.kvCacheDtypes().filter(type -> type.label().endsWith("ds_mla")))
        .containsExactlyInAnyOrder(KvCacheDtype.FP8_DS_MLA, KvCacheDtype.NVFP4_DS_MLA);
  }

  @ParameterizedTest(name = "FLASHMLA_SPARSE makes {1} of {0}")
  @CsvSource({
    "fp8, fp8_ds_mla",
    "fp8_e4m3, fp8_ds_mla",
    "fp8_ds_mla, fp8_ds_mla",
    "nvfp4_ds_mla, none",
    "auto, none",
    "bfloat16, none",
  })
  void aQuantisedCacheIsPacked(String asked, String cached) {
    assertThat(
            ((ResolvesVariants) backend("FLASHMLA_SPARSE"))
                .variant(
                    Asking.request(
                            "--use-mla --use-sparse --capability 10.0 --kv-cache-dtype " + asked)
                        .asked())
                .cacheType()
                .map(KvCacheDtype::label)
                .getOrElse("none"))
        .isEqualTo(cached);
  }

  @Test
  void theSparseBackendOfHopperObjectsToDenseLayersByItself() {
    assertThat(
            backend("FLASHINFER_MLA_SPARSE_SM90")
                .checkCombination(Asking.request("--use-mla --capability 9.0").asked())
                .map(InvalidReason::text))
        .contains("FLASHINFER_MLA_SPARSE_SM90 requires sparse MLA");
  }

  @ParameterizedTest(name = "{0}: {2}")
  @CsvSource(
      delimiter = '|',
      value = {
        "XPU_MLA_SPARSE | --platform xpu --use-sparse | FP8 kv is not supported with XPU MLA Sparse"
            + " yet",
        "AMX_MLA | --cpu-isa amx | AMX_MLA takes no kv_cache_dtype but auto, got fp8",
      })
  void otherPlatformsObjectToQuantisedCachesByThemselves(
      String name, String arguments, String expected) {
    assertThat(
            backend(name)
                .checkCombination(
                    Asking.request("--use-mla --kv-cache-dtype fp8 " + arguments).asked())
                .map(InvalidReason::text))
        .contains(expected);
  }

  @Test
  void megaAttentionTakesHeadsInGroupsOfEight() {
    assertThat(objection("FLASHMLA_MEGA_ATTN_DSV41", "--capability 10.0 --num-heads 24")).isEmpty();
  }

  @ParameterizedTest(name = "{0} on {1}, {2}: {3}")
  @CsvSource(
      delimiter = '|',
      value = {
        "FLASHINFER_MLA_SPARSE | 10.0 | --kv-cache-dtype fp8_ds_mla | FLASHINFER_MLA_SPARSE SM10"
            + " does not support fp8_ds_mla kv-cache dtype",
        "FLASHINFER_MLA_SPARSE_SM120 | 12.0 | --dtype fp16 | dtype not supported",
        "FLASHINFER_MLA_SPARSE_SM120 | 12.0 | --kv-cache-dtype bfloat16 | kv_cache_dtype not"
            + " supported",
        "FLASHINFER_MLA_SPARSE_SM90 | 9.0 | --qk-rope-head-dim 32 | FLASHINFER_MLA_SPARSE_SM90"
            + " requires qk_rope_head_dim in (0, 64)",
        "FLASH_ATTN_MLA_SPARSE | 9.0 | --kv-cache-dtype fp8 | FlashAttention MLA Sparse currently"
            + " supports only FP16/BF16 KV cache",
        "FLASHMLA_SPARSE | 8.0 | --head-size 576 | FlashMLA Sparse is only supported on Hopper and"
            + " Blackwell DC devices.",
        "FLASH_ATTN_MLA | 9.0 | --kv-cache-dtype fp8 | FlashAttnMLA V1 with FP8 KV cache not yet"
            + " supported",
        "TOKENSPEED_MLA | 10.0 | --kv-cache-dtype bfloat16 | TokenspeedMLAImpl requires an FP8 KV"
            + " cache (--kv-cache-dtype fp8 or fp8_e4m3); got kv_cache_dtype='bfloat16'.",
        "FLASHMLA_SPARSE | 12.0 | --head-size 576 | FlashMLA Sparse is only supported on Hopper and"
            + " Blackwell DC devices.",
        "FLASHINFER_MLA_SPARSE_DSV4 | 9.0 | --head-size 512 | FLASHINFER_MLA_SPARSE_DSV4 requires"
            + " SM10x or SM12x",
        "FLASHINFER_MLA_SPARSE_DSV4 | 12.0 | --kv-cache-dtype bfloat16 | kv_cache_dtype not"
            + " supported",
        "FLASHMLA_SPARSE_DSV4 | 9.0 | --kv-cache-dtype bfloat16 | DeepseekV4 packed KV layouts only"
            + " support fp8 kv-cache, got bfloat16; use --kv-cache-dtype fp8",
        "FLASHMLA_MEGA_ATTN_DSV41 | 9.0 | --head-size 512 | FlashMLA mega attention requires sm_10x"
            + " GPUs.",
        "FLASHMLA_MEGA_ATTN_DSV41 | 10.0 | --assume no-flashmla-mega | vllm._flashmla_C was built"
            + " without the mega attention ops.",
        "FLASHMLA_MEGA_ATTN_DSV41 | 10.0 | --assume no-flashmla-mega-permute | vllm._flashmla_C"
            + " predates the mega attention weight permutes.",
        "FLASHMLA_MEGA_ATTN_DSV41 | 10.0 | --assume no-flashmla | vllm._flashmla_C is not available,"
            + " likely was not compiled due to insufficient nvcc version or a supported arch was"
            + " not in the list of target arches to compile for.",
        "FLASHMLA_MEGA_ATTN_DSV41 | 10.0 | --num-heads 12 | mega attention needs the local head"
            + " count (12) to be a multiple of 8.",
        "FLASHINFER_MLA_SPARSE_DSV41 | 10.0 | --kv-cache-dtype fp8_ds_mla |"
            + " FLASHINFER_MLA_SPARSE_DSV4 SM10x uses the plain per-tensor FP8 KV layout, not"
            + " fp8_ds_mla",
      })
  void objectionsAreSaidToTheLetter(
      String name, String capability, String arguments, String expected) {
    assertThat(objection(name, "--capability " + capability + " " + arguments)).contains(expected);
  }
}
