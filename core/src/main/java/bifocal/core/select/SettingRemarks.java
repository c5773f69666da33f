package bifocal.core.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.Platform;
import bifocal.core.layer.AttentionLayerSpec;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.function.Predicate;

/**
 * A word on each setting that a user changed and that did not decide the choice: either what it is
 * recorded for, or that nothing which was chosen reads it.
 */
final class SettingRemarks {
  private static final int BLACKWELL = 10;

  private SettingRemarks() {}

  /** What a setting's readers are looked for in. */
  private record Choice(
      AttentionConfig config,
      AttentionRequest asked,
      Seq<BackendName> runs,
      Option<String> prefill) {
    private boolean runs(KnownBackend... backends) {
      return Vector.of(backends).exists(known -> runs.contains(known.backend()));
    }

    private boolean on(Platform platform) {
      return asked.device().platform() == platform;
    }
  }

  /**
   * One setting.
   *
   * @param key its name
   * @param changed whether the user changed it
   * @param readers who reads it, in words
   * @param read whether one of these was chosen
   * @param decides whether a choice depends on it where it is read
   */
  private record Setting(
      String key,
      Predicate<AttentionConfig> changed,
      String readers,
      Predicate<Choice> read,
      boolean decides) {
    private Option<String> remark(Choice choice) {
      if (!changed.test(choice.config())) {
        return Option.none();
      }
      if (!read.test(choice)) {
        return Option.some(
            "attention_config." + key + " has no effect here: only " + readers + " reads it");
      }
      return Option.when(
          !decides,
          () ->
              "attention_config."
                  + key
                  + " is recorded for "
                  + readers
                  + "; it does not decide the choice, and no kernel of this build reads it");
    }
  }

  private static final Seq<Setting> ALL =
      Vector.of(
              recorded(
                  "minimax_m3_msa_decode_backend",
                  config -> config.minimaxM3MsaDecodeBackend() != MsaDecode.TRITON,
                  "MINIMAX_M3_SPARSE",
                  choice -> choice.runs(KnownBackend.MINIMAX_M3_SPARSE)),
              deciding(
                  "flash_attn_version",
                  config -> config.flashAttnVersion().isDefined(),
                  "FlashAttention",
                  choice -> choice.runs(KnownBackend.FLASH_ATTN, KnownBackend.FLASH_ATTN_DIFFKV)),
              recorded(
                  "flash_attn_max_num_splits_for_cuda_graph",
                  config ->
                      config.flashAttnMaxNumSplitsForCudaGraph()
                          != AttentionConfig.DEFAULT.flashAttnMaxNumSplitsForCudaGraph(),
                  "FlashAttention",
                  choice ->
                      choice.runs(
                          KnownBackend.FLASH_ATTN,
                          KnownBackend.FLASH_ATTN_DIFFKV,
                          KnownBackend.FLASH_ATTN_MLA)),
              recorded(
                  "tq_max_kv_splits_for_cuda_graph",
                  config ->
                      config.tqMaxKvSplitsForCudaGraph()
                          != AttentionConfig.DEFAULT.tqMaxKvSplitsForCudaGraph(),
                  "TURBOQUANT",
                  choice -> choice.runs(KnownBackend.TURBOQUANT)),
              deciding(
                  "use_trtllm_attention",
                  config -> config.useTrtllmAttention().isDefined(),
                  "FLASHINFER",
                  choice -> choice.runs(KnownBackend.FLASHINFER)),
              recorded(
                  "disable_flashinfer_q_quantization",
                  AttentionConfig::disableFlashinferQQuantization,
                  "FLASHINFER",
                  choice -> choice.runs(KnownBackend.FLASHINFER)),
              deciding(
                  "mla_prefill_backend",
                  config -> config.mlaPrefillBackend().isDefined(),
                  "a latent layer whose prefills have a backend of their own",
                  choice -> choice.prefill().isDefined()),
              recorded(
                  "use_prefill_query_quantization",
                  AttentionConfig::usePrefillQueryQuantization,
                  "latent prefill by FLASHINFER, TRTLLM_RAGGED or TOKENSPEED_MLA on 10.x with a"
                      + " quantised cache",
                  SettingRemarks::quantisesPrefillQueries),
              recorded(
                  "indexer_kv_dtype",
                  config -> config.indexerKvDtype() != IndexerKvDtype.AUTO,
                  "a layer that chooses its keys",
                  choice -> choice.asked().layer().choosesKeys()),
              recorded(
                  "indexer_sparse_logits",
                  AttentionConfig::indexerSparseLogits,
                  "a layer that chooses its keys",
                  choice -> choice.asked().layer().choosesKeys()))
          .appendAll(
              Vector.of(
                  deciding(
                      "hisparse_config",
                      config -> config.hisparseConfig().isDefined(),
                      "sparse latent attention on CUDA",
                      choice -> choice.on(Platform.CUDA) && sparseLatent(choice)),
                  deciding(
                      "sparse_mla_force_mqa",
                      AttentionConfig::sparseMlaForceMqa,
                      "sparse latent attention",
                      SettingRemarks::sparseLatent),
                  flex("flex_attn_block_m", config -> config.flexAttnBlockM().isDefined()),
                  flex("flex_attn_block_n", config -> config.flexAttnBlockN().isDefined()),
                  flex("flex_attn_q_block_size", config -> config.flexAttnQBlockSize().isDefined()),
                  flex(
                      "flex_attn_kv_block_size",
                      config -> config.flexAttnKvBlockSize().isDefined()),
                  rocm("rocm_use_aiter", AttentionConfig::rocmUseAiter),
                  rocm("rocm_use_aiter_mha", config -> !config.rocmUseAiterMha()),
                  rocm(
                      "rocm_use_aiter_unified_attention",
                      config -> config.rocmUseAiterUnifiedAttention().isDefined()),
                  rocm("rocm_use_aiter_mla", config -> !config.rocmUseAiterMla())));

  /**
   * Remarks on the settings of a choice.
   *
   * @param runs the chosen backend and everything inside it
   * @param prefill backend of latent prefill
   */
  static Seq<String> of(
      AttentionConfig config,
      AttentionRequest asked,
      Seq<BackendName> runs,
      Option<String> prefill) {
    Choice choice = new Choice(config, asked, runs, prefill);
    return ALL.flatMap(setting -> setting.remark(choice));
  }

  private static Setting recorded(
      String key, Predicate<AttentionConfig> changed, String readers, Predicate<Choice> read) {
    return new Setting(key, changed, readers, read, false);
  }

  private static Setting deciding(
      String key, Predicate<AttentionConfig> changed, String readers, Predicate<Choice> read) {
    return new Setting(key, changed, readers, read, true);
  }

  private static Setting flex(String key, Predicate<AttentionConfig> changed) {
    return recorded(
        key, changed, "FLEX_ATTENTION", choice -> choice.runs(KnownBackend.FLEX_ATTENTION));
  }

  private static Setting rocm(String key, Predicate<AttentionConfig> changed) {
    return deciding(key, changed, "platform rocm", choice -> choice.on(Platform.ROCM));
  }

  private static boolean sparseLatent(Choice choice) {
    return choice.asked().layer() instanceof AttentionLayerSpec.SparseMla;
  }

  private static boolean quantisesPrefillQueries(Choice choice) {
    AttentionLayerSpec layer = choice.asked().layer();
    boolean blackwell =
        choice.asked().device() instanceof DeviceProfile.Cuda cuda
            && cuda.capability().major() == BLACKWELL;
    return blackwell
        && choice.prefill().exists(name -> !name.equals(LatentPrefillBackend.FLASH_ATTN.name()))
        && layer.kvCacheDtype() != KvCacheDtype.AUTO
        && layer.kvCacheDtype() != KvCacheDtype.FLOAT16
        && layer.kvCacheDtype() != KvCacheDtype.BFLOAT16;
  }
}
