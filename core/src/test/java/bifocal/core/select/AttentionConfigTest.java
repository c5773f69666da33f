package bifocal.core.select;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.BackendName;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.vavr.collection.Vector;
import java.lang.reflect.RecordComponent;
import java.util.Locale;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class AttentionConfigTest {

  private static AttentionConfig json(String text) {
    return AttentionConfigReader.start().json(text.replace('\'', '"')).config();
  }

  private static void assertRefused(Supplier<AttentionConfig> config, String text) {
    assertThatThrownBy(config::get).isInstanceOf(BifocalException.class).hasMessageContaining(text);
  }

  @ParameterizedTest(name = "config defaults: {0}")
  @CsvSource({
    "backend, None",
    "minimaxM3MsaDecodeBackend, TRITON",
    "backendPerKind, LinkedHashMap()",
    "flashAttnVersion, None",
    "flashAttnMaxNumSplitsForCudaGraph, 32",
    "tqMaxKvSplitsForCudaGraph, 32",
    "useTrtllmAttention, None",
    "disableFlashinferQQuantization, false",
    "mlaPrefillBackend, None",
    "usePrefillQueryQuantization, false",
    "useFp4IndexerCache, None",
    "indexerKvDtype, AUTO",
    "indexerSparseLogits, false",
    "hisparseConfig, None",
    "useNonCausal, false",
    "sparseMlaForceMqa, false",
    "flexAttnBlockM, None",
    "flexAttnBlockN, None",
    "flexAttnQBlockSize, None",
    "flexAttnKvBlockSize, None",
    "prefillBackend, None",
    "decodeBackend, None",
  })
  void defaults(String component, String value) throws ReflectiveOperationException {
    assertThat(
            String.valueOf(
                AttentionConfig.class.getMethod(component).invoke(AttentionConfig.DEFAULT)))
        .isEqualTo(value);
  }

  @Test
  void everyFieldHasAKeyAndEveryKeyAField() {
    assertThat(ConfigKeys.ALL.map(ConfigKey::name))
        .containsExactlyElementsOf(
            Vector.of(AttentionConfig.class.getRecordComponents())
                .map(RecordComponent::getName)
                .map(AttentionConfigTest::snakeCase));
  }

  private static String snakeCase(String name) {
    return name.replaceAll("([A-Z])", "_$1").toLowerCase(Locale.ROOT);
  }

  @ParameterizedTest(name = "config: name {0} is {1}")
  @CsvSource({"flash_attn, FLASH_ATTN", "Flash_Attn, FLASH_ATTN", "b12x, B12X"})
  void namesAreReadInAnyLetterCase(String given, String name) {
    assertThat(json("{'backend':'" + given + "'}").backend()).contains(BackendName.of(name));
  }

  @ParameterizedTest(name = "config: {0} decides")
  @ValueSource(strings = {"auto", "AUTO", "Auto"})
  void autoMeansNone(String given) {
    assertThat(json("{'backend':'" + given + "'}").backend()).isEmpty();
    assertThat(json("{'mla_prefill_backend':'" + given + "'}").mlaPrefillBackend()).isEmpty();
  }

  @ParameterizedTest(name = "config: {0} chooses the sparse decode and leaves dense layers open")
  @CsvSource({"CUTLASS_MSA, CUTLASS", "TRITON_MSA, TRITON"})
  void twoNamesAreAliases(String name, MsaDecode decode) {
    AttentionConfig config = json("{'backend':'" + name + "'}");

    assertThat(config.backend()).isEmpty();
    assertThat(config.minimaxM3MsaDecodeBackend()).isEqualTo(decode);
  }

  @Test
  void theEnumAndTheStringExcludeEachOtherEvenIfEqual() {
    assertRefused(
        () ->
            AttentionConfig.builder()
                .attentionBackend("FLASH_ATTN")
                .backend(KnownBackend.FLASH_ATTN)
                .build(),
        "attention_backend and attention_config.backend are mutually exclusive");
  }

  @Test
  void eitherAloneNamesTheSameBackend() {
    assertThat(AttentionConfig.builder().attentionBackend("flash_attn").build())
        .isEqualTo(AttentionConfig.builder().backend(KnownBackend.FLASH_ATTN).build())
        .isEqualTo(json("{'backend':'FLASH_ATTN'}"))
        .isEqualTo(AttentionConfigReader.start().key("backend", "FLASH_ATTN").config());
  }

  @ParameterizedTest(name = "phase pairs: backend with {0}")
  @ValueSource(strings = {"prefill_backend", "decode_backend"})
  void aBackendExcludesRoles(String role) {
    assertRefused(
        () -> json("{'backend':'FLASH_ATTN','" + role + "':'TRITON_ATTN'}"),
        "`backend` (--attention-backend) is mutually exclusive with"
            + " `prefill_backend`/`decode_backend`");
  }

  @ParameterizedTest(name = "phase pairs: {0} resolves to {1}, {2}")
  @CsvSource({
    "'{''backend'':''A''}', A, A",
    "'{''prefill_backend'':''P''}', P, none",
    "'{''decode_backend'':''D''}', none, D",
    "'{''prefill_backend'':''P'',''decode_backend'':''D''}', P, D",
    "'{}', none, none",
    "'{''prefill_backend'':''auto'',''decode_backend'':''D''}', none, D",
  })
  void rolesResolve(String text, String prefill, String decode) {
    AttentionConfig config = json(text);

    assertThat(config.prefillRole().map(BackendName::value).getOrElse("none")).isEqualTo(prefill);
    assertThat(config.decodeRole().map(BackendName::value).getOrElse("none")).isEqualTo(decode);
  }

  @ParameterizedTest(name = "config: {0} is refused")
  @CsvSource(
      delimiter = '|',
      value = {
        "{'flash_attn_version':5} | 2, 3 or 4",
        "{'flash_attn_version':'x'} | a whole number",
        "{'use_trtllm_attention':2} | true or false",
        "{'indexer_kv_dtype':'fp7'} | auto, bf16, fp8, mxfp4, nvfp4",
        "{'minimax_m3_msa_decode_backend':'cuda'} | triton, cutlass",
        "{'flex_attn_block_m':8} | a power of two of at least 16",
        "{'flex_attn_block_m':24} | a power of two of at least 16",
        "{'flex_attn_q_block_size':16,'flex_attn_block_m':32} | a multiple of flex_attn_block_m,"
            + " 32",
        "{'backend_per_kind':[]} | a JSON object",
        "{'backend_per_kind':{'bogus':'X'}} | Unknown KV cache group kind 'bogus'",
        "{'backend':7} | text",
        "{'bakend':'X'} | the nearest known one is 'backend'",
        "{'use_prefill_decode_attention':true} | retired",
        "{'use_fp4_indexer_cache':true,'indexer_kv_dtype':'fp8'} | mxfp4",
        "[] | a JSON object",
        "{ | a JSON object",
        "{'backend':'A','backend':'B'} | the key 'backend' twice",
        "{} {} | a JSON object",
      })
  void wrongValuesAreRefused(String text, String part) {
    assertRefused(() -> json(text), part);
  }

  @ParameterizedTest(name = "config: use_trtllm_attention={0} is {1}")
  @CsvSource({"0, false", "1, true", "true, true", "False, false"})
  void switchesAreNumbersOrWords(String text, boolean value) {
    assertThat(
            AttentionConfigReader.start()
                .key("use_trtllm_attention", text)
                .config()
                .useTrtllmAttention())
        .contains(value);
  }

  @Test
  void aKeySaidTwiceWithTwoValuesIsRefused() {
    assertRefused(
        () ->
            AttentionConfigReader.start().key("backend", "A").json("{\"backend\":\"B\"}").config(),
        "attention_config.backend is given twice");
  }

  @Test
  void theOldIndexerSwitchMeansItsSuccessor() {
    assertThat(json("{'use_fp4_indexer_cache':true}").indexerKvDtype())
        .isEqualTo(IndexerKvDtype.MXFP4);
  }

  @Test
  void aKindsBackendWinsOverEveryones() {
    AttentionConfig config =
        json("{'backend':'A','backend_per_kind':{'sliding_window_mla':'triton_mla'}}");

    assertThat(config.backendOf(LayerKind.SLIDING_WINDOW_MLA))
        .contains(BackendName.of("TRITON_MLA"));
    assertThat(config.backendOf(LayerKind.FULL_ATTENTION)).contains(BackendName.of("A"));
  }

  @Test
  void anotherConfigurationIsAnotherValue() {
    assertThat(json("{'prefill_backend':'P','decode_backend':'D'}"))
        .isNotEqualTo(json("{'prefill_backend':'P'}"))
        .hasSameHashCodeAs(json("{'decode_backend':'D','prefill_backend':'P'}"));
  }

  @Test
  void theSchemaHasEveryKeyAndNoOther() {
    ObjectNode schema = AttentionConfigReader.schema();

    assertThat(schema.get("additionalProperties").asBoolean()).isFalse();
    assertThat(Vector.ofAll(() -> schema.get("properties").fieldNames()))
        .isEqualTo(ConfigKeys.ALL.map(ConfigKey::name));
  }

  @Test
  void refusalsHaveTheirCode() {
    assertThatThrownBy(() -> json("{'bakend':'X'}"))
        .isInstanceOfSatisfying(
            BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_OPTION));
  }
}
