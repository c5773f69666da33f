package bifocal.core.select;

import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;

/**
 * Environment variables that the reference reads or once read. Nothing here reads the environment,
 * so a variable that someone still sets is worth a remark that names what to say in its place.
 */
public final class UnreadVariables {
  private static final Map<String, String> IN_THEIR_PLACE =
      LinkedHashMap.<String, String>empty()
          .put("VLLM_ATTENTION_BACKEND", "--attention-backend")
          .put("VLLM_BATCH_INVARIANT", "--batch-invariant")
          .put("VLLM_FLASH_ATTN_VERSION", key("flash_attn_version"))
          .put(
              "VLLM_FLASH_ATTN_MAX_NUM_SPLITS_FOR_CUDA_GRAPH",
              key("flash_attn_max_num_splits_for_cuda_graph"))
          .put("VLLM_USE_TRTLLM_ATTENTION", key("use_trtllm_attention"))
          .put("VLLM_FLASHINFER_DISABLE_Q_QUANTIZATION", key("disable_flashinfer_q_quantization"))
          .put("VLLM_DISABLE_FLASHINFER_PREFILL", key("mla_prefill_backend"))
          .put("VLLM_USE_CUDNN_PREFILL", key("mla_prefill_backend"))
          .put("VLLM_USE_TRTLLM_RAGGED_DEEPSEEK_PREFILL", key("mla_prefill_backend"))
          .put("VLLM_V1_USE_PREFILL_DECODE_ATTENTION", key("prefill_backend"))
          .put("VLLM_ROCM_USE_AITER", key("rocm_use_aiter"))
          .put("VLLM_ROCM_USE_AITER_MHA", key("rocm_use_aiter_mha"))
          .put("VLLM_ROCM_USE_AITER_MLA", key("rocm_use_aiter_mla"))
          .put("VLLM_ROCM_USE_AITER_UNIFIED_ATTENTION", key("rocm_use_aiter_unified_attention"));

  private UnreadVariables() {}

  private static String key(String name) {
    return "--attention-config." + name;
  }

  /** A remark for each variable that is set. */
  public static Seq<String> remarks(java.util.Map<String, String> environment) {
    return IN_THEIR_PLACE
        .filterKeys(environment::containsKey)
        .toVector()
        .map(
            variable ->
                "environment variable "
                    + variable._1()
                    + " is not read; say "
                    + variable._2()
                    + " in its place");
  }
}
