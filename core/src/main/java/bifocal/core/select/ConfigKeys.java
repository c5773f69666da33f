package bifocal.core.select;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.vavr.Tuple;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.util.Locale;
import java.util.function.BiConsumer;

/** All keys of the attention configuration. Parsing, help and JSON Schema read this list. */
public final class ConfigKeys {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  /** Every key, in the order of {@link AttentionConfig}. */
  public static final Seq<ConfigKey> ALL =
      Vector.of(
          text(
              "backend",
              "Backend of all layers, in any letter case; auto decides.",
              AttentionConfig.Builder::backend),
          choice(
              "minimax_m3_msa_decode_backend",
              "Kernel of MiniMax M3's sparse decode.",
              MsaDecode.class,
              AttentionConfig.Builder::minimaxM3MsaDecodeBackend),
          perKind(),
          integer(
              "flash_attn_version",
              "FlashAttention version: 2, 3 or 4.",
              Vector.of(2, 3, 4),
              AttentionConfig.Builder::flashAttnVersion),
          integer(
              "flash_attn_max_num_splits_for_cuda_graph",
              "Most splits of a request in a captured graph, by default 32.",
              Vector.empty(),
              AttentionConfig.Builder::flashAttnMaxNumSplitsForCudaGraph),
          integer(
              "tq_max_kv_splits_for_cuda_graph",
              "Most splits of a request in a captured graph of TURBOQUANT, by default 32.",
              Vector.empty(),
              AttentionConfig.Builder::tqMaxKvSplitsForCudaGraph),
          bool(
              "use_trtllm_attention",
              "1 forces FlashInfer's XQA or trtllm-gen kernels, 0 forbids them.",
              AttentionConfig.Builder::useTrtllmAttention),
          bool(
              "disable_flashinfer_q_quantization",
              "Whether FlashInfer leaves queries in the model's type.",
              AttentionConfig.Builder::disableFlashinferQQuantization),
          text(
              "mla_prefill_backend",
              "Backend of latent prefill; auto decides.",
              AttentionConfig.Builder::mlaPrefillBackend),
          bool(
              "use_prefill_query_quantization",
              "Whether queries of latent prefill are quantised.",
              AttentionConfig.Builder::usePrefillQueryQuantization),
          bool(
              "use_fp4_indexer_cache",
              "Retired: say indexer_kv_dtype=mxfp4.",
              AttentionConfig.Builder::useFp4IndexerCache),
          choice(
              "indexer_kv_dtype",
              "Type of the indexer's side cache.",
              IndexerKvDtype.class,
              AttentionConfig.Builder::indexerKvDtype),
          bool(
              "indexer_sparse_logits",
              "Whether the indexer computes only needed logits.",
              AttentionConfig.Builder::indexerSparseLogits),
          object("hisparse_config", "Settings of hierarchical sparse attention."),
          bool(
              "use_non_causal",
              "Whether decoder layers attend both ways.",
              AttentionConfig.Builder::useNonCausal),
          bool(
              "sparse_mla_force_mqa",
              "Whether sparse latent prefill runs as multi-query attention.",
              AttentionConfig.Builder::sparseMlaForceMqa),
          integer(
              "flex_attn_block_m",
              "FLEX_ATTENTION's tile of queries.",
              Vector.empty(),
              AttentionConfig.Builder::flexAttnBlockM),
          integer(
              "flex_attn_block_n",
              "FLEX_ATTENTION's tile of keys.",
              Vector.empty(),
              AttentionConfig.Builder::flexAttnBlockN),
          integer(
              "flex_attn_q_block_size",
              "Queries per block of FLEX_ATTENTION's mask.",
              Vector.empty(),
              AttentionConfig.Builder::flexAttnQBlockSize),
          integer(
              "flex_attn_kv_block_size",
              "Keys per block of FLEX_ATTENTION's mask.",
              Vector.empty(),
              AttentionConfig.Builder::flexAttnKvBlockSize),
          text(
              "prefill_backend",
              "Backend of prefills; with decode_backend, a pair.",
              AttentionConfig.Builder::prefillBackend),
          text(
              "decode_backend",
              "Backend of decodes; with prefill_backend, a pair.",
              AttentionConfig.Builder::decodeBackend),
          bool(
              "triton_flash_attn_allows_fa3",
              "Whether TRITON_FLASH_ATTN may have FlashAttention 3 as its causal child.",
              AttentionConfig.Builder::tritonFlashAttnAllowsFa3),
          bool(
              "rocm_use_aiter",
              "General switch of AMD's AITER kernels.",
              AttentionConfig.Builder::rocmUseAiter),
          bool(
              "rocm_use_aiter_mha",
              "Switch of AITER's flash attention kernel.",
              AttentionConfig.Builder::rocmUseAiterMha),
          bool(
              "rocm_use_aiter_unified_attention",
              "Switch of AITER's unified kernel alone.",
              AttentionConfig.Builder::rocmUseAiterUnifiedAttention),
          bool(
              "rocm_use_aiter_mla",
              "Switch of AITER's latent decode kernels.",
              AttentionConfig.Builder::rocmUseAiterMla));

  /** Every key by its name. */
  public static final Map<String, ConfigKey> BY_NAME =
      LinkedHashMap.ofEntries(ALL.map(key -> Tuple.of(key.name(), key)));

  /** Names that were read once, and what takes their place. */
  public static final Map<String, String> RETIRED =
      LinkedHashMap.of(
          "use_prefill_decode_attention", "prefill_backend and decode_backend",
          "use_cudnn_prefill", "mla_prefill_backend",
          "use_trtllm_ragged_deepseek_prefill", "mla_prefill_backend=TRTLLM_RAGGED",
          "disable_flashinfer_prefill", "mla_prefill_backend");

  private ConfigKeys() {}

  private static ConfigKey text(
      String name, String description, BiConsumer<AttentionConfig.Builder, String> say) {
    return new ConfigKey(
        name,
        description,
        typed("string"),
        (builder, value) -> say.accept(builder, readText(name, value)));
  }

  private static ConfigKey bool(
      String name, String description, BiConsumer<AttentionConfig.Builder, Boolean> say) {
    return new ConfigKey(
        name,
        description,
        typed("boolean"),
        (builder, value) -> say.accept(builder, readBoolean(name, value)));
  }

  private static ConfigKey integer(
      String name,
      String description,
      Seq<Integer> allowed,
      BiConsumer<AttentionConfig.Builder, Integer> say) {
    ObjectNode schema = typed("integer");
    if (allowed.isEmpty()) {
      schema.put("minimum", 1);
    } else {
      allowed.forEach(schema.putArray("enum")::add);
    }
    return new ConfigKey(
        name,
        description,
        schema,
        (builder, value) -> say.accept(builder, readInteger(name, value)));
  }

  private static <E extends Enum<E>> ConfigKey choice(
      String name, String description, Class<E> type, BiConsumer<AttentionConfig.Builder, E> say) {
    Seq<String> allowed =
        Vector.of(type.getEnumConstants()).map(e -> e.name().toLowerCase(Locale.ROOT));
    ObjectNode schema = typed("string");
    allowed.forEach(schema.putArray("enum")::add);
    return new ConfigKey(
        name,
        description,
        schema,
        (builder, value) ->
            say.accept(
                builder,
                Vector.of(type.getEnumConstants())
                    .find(e -> e.name().equalsIgnoreCase(readText(name, value).strip()))
                    .getOrElseThrow(() -> wrong(name, value, allowed.mkString(", ")))));
  }

  private static ConfigKey perKind() {
    String name = "backend_per_kind";
    ObjectNode schema = typed("object");
    ObjectNode properties = schema.putObject("properties");
    Vector.of(LayerKind.values()).forEach(k -> properties.set(k.label(), typed("string")));
    schema.put("additionalProperties", false);
    return new ConfigKey(
        name,
        "Backends of single kinds of layers, which win over backend.",
        schema,
        (builder, value) -> {
          if (!value.isObject()) {
            throw wrong(name, value, "a JSON object of kinds and backends");
          }
          value
              .properties()
              .forEach(
                  entry ->
                      builder.backendPerKind(
                          LayerKind.of(entry.getKey()),
                          readText(name + "." + entry.getKey(), entry.getValue())));
        });
  }

  private static ConfigKey object(String name, String description) {
    return new ConfigKey(
        name,
        description,
        typed("object"),
        (builder, value) -> {
          if (!value.isObject()) {
            throw wrong(name, value, "a JSON object");
          }
          builder.hisparseConfig(value.toString());
        });
  }

  private static ObjectNode typed(String type) {
    return JSON.objectNode().put("type", type);
  }

  private static String readText(String name, JsonNode value) {
    if (!value.isTextual()) {
      throw wrong(name, value, "text");
    }
    return value.textValue();
  }

  private static int readInteger(String name, JsonNode value) {
    if (!value.isInt()) {
      throw wrong(name, value, "a whole number");
    }
    return value.intValue();
  }

  private static boolean readBoolean(String name, JsonNode value) {
    if (value.isBoolean()) {
      return value.booleanValue();
    }
    return switch (value.asText().strip().toLowerCase(Locale.ROOT)) {
      case "1", "true" -> true;
      case "0", "false" -> false;
      default -> throw wrong(name, value, "true or false");
    };
  }

  private static BifocalException wrong(String name, JsonNode value, String wanted) {
    return BifocalException.of(ErrorCode.INVALID_OPTION, "attention_config." + name, value, wanted);
  }
}
