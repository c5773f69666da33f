package bifocal.cli.select;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.cli.Main;
import bifocal.cli.command.CommandRun;
import bifocal.core.device.Platform;
import bifocal.core.select.UnreadVariables;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The command from its arguments to its streams and status. */
class SelectCommandTest {
  private static final JsonMapper MAPPER = new JsonMapper();
  private static final Map<String, String> EVERY_VARIABLE =
      Stream.of(
              "VLLM_ATTENTION_BACKEND",
              "VLLM_FLASH_ATTN_VERSION",
              "VLLM_FLASH_ATTN_MAX_NUM_SPLITS_FOR_CUDA_GRAPH",
              "VLLM_USE_TRTLLM_ATTENTION",
              "VLLM_FLASHINFER_DISABLE_Q_QUANTIZATION",
              "VLLM_DISABLE_FLASHINFER_PREFILL",
              "VLLM_USE_CUDNN_PREFILL",
              "VLLM_USE_TRTLLM_RAGGED_DEEPSEEK_PREFILL",
              "VLLM_V1_USE_PREFILL_DECODE_ATTENTION",
              "VLLM_ROCM_USE_AITER",
              "VLLM_ROCM_USE_AITER_MHA",
              "VLLM_ROCM_USE_AITER_MLA",
              "VLLM_ROCM_USE_AITER_UNIFIED_ATTENTION",
              "VLLM_BATCH_INVARIANT")
          .collect(Collectors.toMap(Function.identity(), variable -> ""));

  @BeforeEach
  void needsCuda() {
    Asking.requireInstalled(Platform.CUDA);
  }

  private static CommandRun run(String arguments) {
    return CommandRun.of("", console -> Main.run(console, arguments.split(" ")));
  }

  private static JsonNode json(String arguments) {
    CommandRun run = run("select " + arguments + " --format json");
    try {
      return MAPPER.readTree(run.out());
    } catch (IOException e) {
      throw new AssertionError(run.out(), e);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "9.0, gemma-4-31b, TRITON_FLASH_ATTN",
    "10.0, gemma-4-31b, TRITON_FLASHINFER",
    "8.0, llama-3.1-8b, FLASH_ATTN",
    "9.0, llama-3.1-8b, FLASH_ATTN",
    "10.0, llama-3.1-8b, FLASHINFER",
  })
  void aModelOnASimulatedDevice(String capability, String model, String backend) {
    JsonNode json = json("--platform cuda --capability " + capability + " --model " + model);

    assertThat(json.path("backend").asText()).isEqualTo(backend);
    assertThat(json.path("simulated").asBoolean()).isTrue();
  }

  @Test
  void theKeysStandInTheirOrder() {
    Iterable<String> keys = () -> json("--platform cuda --capability 9.0").fieldNames();

    assertThat(keys)
        .containsExactly(
            "backend",
            "source",
            "platform",
            "capability",
            "simulated",
            "extension",
            "flash_attn_version",
            "flashinfer_kernel",
            "mla_prefill_backend",
            "kv_cache_dtype",
            "kv_layout",
            "kernel_block_sizes",
            "block_size",
            "graph_support",
            "children",
            "candidates");
  }

  @ParameterizedTest
  @CsvSource({
    "--attention-backend, FLASH_ATTN",
    "--attention-config.backend, flash_attn",
    "-ac.backend, Flash_Attn",
    "--attention-config, '{\"backend\":\"FLASH_ATTN\"}'",
    "-ac, '{\"backend\":\"FLASH_ATTN\"}'",
  })
  void everyFormNamesABackendInBothSpellings(String option, String value) {
    String device = "--capability 10.0 ";

    assertThat(
            Stream.of(device + option + " " + value, device + option + "=" + value)
                .map(arguments -> json(arguments).path("source").asText())
                .distinct())
        .containsExactly("explicit");
  }

  @Test
  void twoWaysToNameABackendExcludeEachOther() {
    CommandRun run =
        run("select --capability 9.0 --attention-backend FLASH_ATTN -ac.backend FLASH_ATTN");

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err())
        .isEqualTo(
            "bifocal: attention_backend and attention_config.backend are mutually exclusive"
                + " (INVALID_OPTION)"
                + System.lineSeparator());
  }

  @Test
  void aLatentBackendIsRefusedToTheLetter() {
    CommandRun run =
        run(
            "select --platform cuda --capability 8.0 --use-mla --attention-backend FLASHMLA"
                + " --num-heads 128");

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err())
        .isEqualTo(
            "bifocal: Selected backend FLASHMLA is not valid for this configuration. Reason:"
                + " ['compute capability not supported']"
                + System.lineSeparator());
  }

  @Test
  void aRecordingSaysWhatWasChosenAndWhatElseWasConsidered(@TempDir Path folder)
      throws IOException {
    Path file = folder.resolve("selection.jfr");
    try (Recording recording = new Recording()) {
      recording.enable("bifocal.Selection");
      recording.start();
      run("select --capability 9.0 --head-size 256 --mm-prefix");
      recording.stop();
      recording.dump(file);
    }

    assertThat(RecordingFile.readAllEvents(file))
        .filteredOn(event -> event.getEventType().getName().equals("bifocal.Selection"))
        .singleElement()
        .satisfies(
            event -> {
              assertThat(event.getString("backend")).isEqualTo("TRITON_ATTN");
              assertThat(event.getString("source")).isEqualTo("priority");
              assertThat(event.getString("device")).isEqualTo("cuda 9.0");
              assertThat(event.getInt("headSize")).isEqualTo(256);
              assertThat(event.getString("considered"))
                  .startsWith(
                      "TRITON_FLASH_ATTN: FLASH_ATTN: causal route requires FlashAttention v4; ")
                  .contains("TRITON_ATTN ok");
            });
  }

  @ParameterizedTest
  @CsvSource({
    "VLLM_ATTENTION_BACKEND, --attention-backend",
    "VLLM_FLASH_ATTN_VERSION, --attention-config.flash_attn_version",
    "VLLM_USE_TRTLLM_ATTENTION, --attention-config.use_trtllm_attention",
    "VLLM_ROCM_USE_AITER, --attention-config.rocm_use_aiter",
    "VLLM_BATCH_INVARIANT, --batch-invariant",
  })
  void aVariableThatIsNotReadIsNamedWithWhatTakesItsPlace(String variable, String option) {
    CommandRun run =
        CommandRun.of(
            "",
            Map.of(variable, "1"),
            console -> Main.run(console, "select", "--capability=9.0", "--format=json"));

    assertThat(run.status()).isZero();
    assertThat(run.out()).startsWith("{");
    assertThat(run.err())
        .isEqualTo(
            "bifocal: environment variable "
                + variable
                + " is not read; say "
                + option
                + " in its place"
                + System.lineSeparator());
  }

  @Test
  void everyVariableNamesAnOptionThatThereIs() {
    String options = run("select --help").out().replaceAll("\\s+", "");

    assertThat(UnreadVariables.remarks(EVERY_VARIABLE))
        .hasSize(EVERY_VARIABLE.size())
        .allSatisfy(
            remark ->
                assertThat(options)
                    .contains(remark.substring(remark.indexOf("--"), remark.indexOf(" in its"))));
  }

  @ParameterizedTest(name = "{0}")
  @CsvSource(
      delimiter = '|',
      value = {
        "--capability 9.0 --head-size 0 | --head-size: 0, wanted at least 1",
        "--capability 9.0 --head-size-v 0 | --head-size-v: 0, wanted at least 1",
        "--capability 9.0 --num-heads 0 | --num-heads: 0, wanted at least 1",
        "--capability 9.0 --num-kv-heads 0 | --num-kv-heads: 0, wanted at least 1",
        "--capability 9.0 --block-size 0 | --block-size: 0, wanted at least 1",
        "--capability 9.0 --use-mla --kv-lora-rank 0 | --kv-lora-rank: 0, wanted at least 1",
        "--capability 9.0 --arch gfx942 | --arch is for platform rocm, not for cuda",
        "--platform cpu --capability 9.0 | --capability is for platform cuda, not for cpu",
        "--platform xpu --cpu-isa amx | --cpu-isa is for platform cpu, not for xpu",
        "--capability= | --capability: '', wanted major.minor",
        "--arch= | --arch: '', wanted a name such as gfx942",
        "--arch mi300 | --arch: 'mi300', wanted a name such as gfx942",
        "--platform= | --platform: unknown value ''",
        "--capability 9.0 --model= | --model: unknown model ''",
        "--capability 9.0 --assume fa5 | --assume: unknown package 'fa5' of platform cuda",
        "--capability 9.0 --assume no-fa5 | the nearest known one is 'fa3'",
        "--capability 9.0 --assume fa3 --assume no-fa3 | --assume: both 'fa3' and 'no-fa3'",
        "--capability 9.0 --index-topk 5 | --index-topk is for sparse latent layers",
        "--capability 9.0 --kv-lora-rank 512 | --kv-lora-rank is for latent layers; say --use-mla",
        "--capability 9.0 --layer-kind sliding | --layer-kind is for the layers of a model",
        "--capability 9.0 --use-mla --attn-type encoder | --attn-type is for layers",
        "--capability 9.0 --use-mla --head-size 100 --kv-lora-rank 512 | --head-size: 100, but a"
            + " latent of 512 and 64 rotary elements make 576",
        "--capability 9.0 --model llama-3.1-8b --use-mla | --use-mla is for layers that no model",
        "--capability 9.0 --attention-backend FLASH_ATTN --attention-backend TRITON_ATTN |"
            + " attention_backend is given twice: FLASH_ATTN and TRITON_ATTN",
        "--capability 9.0 -ac.flash_attn_version 3 -ac.flash_attn_version 2 |"
            + " attention_config.flash_attn_version is given twice: 3 and 2",
        "--capability 9.0 --use-mla --dcp-comm-backend a2a | dcp_comm_backend='a2a' requires"
            + " decode_context_parallel_size > 1.",
        "--capability 9.0 --use-mla --dcp 2 --cp-kv-cache-interleave-size 24 | block_size 16 must"
            + " be at least cp_kv_cache_interleave_size 24 and divisible by it",
        "--capability 9.0 --use-mla --use-sparse --dcp 2 --dcp-comm-backend a2a --attention-backend"
            + " FLASHMLA_SPARSE | DCP for FlashMLA sparse is only validated with the default"
            + " 'ag_rs' DCP comm backend; got 'a2a'",
        "--capability 9.0 --use-mla --softcap 30 | --softcap is for layers without latents",
        "--capability 9.0 --model deepseek-v3 --softcap 30 | --softcap is for layers without latents",
        "--capability 9.0 --model deepseek-v3 --head-size 64 | --head-size is for layers whose sizes"
            + " no model says",
        "--capability 9.0 --model deepseek-v3 --num-kv-heads 4 | --num-kv-heads is for layers",
        "--capability 9.0 --model deepseek-v3 --layer-kind full | --layer-kind is for models",
        "--capability 9.0 --model deepseek-v3 --sliding-window 128 | sliding window not supported",
        "--capability 9.0 --model deepseek-v3 --non-causal --attention-backend FLASHMLA |"
            + " non-causal attention not supported",
        "--capability 9.0 --use-mla --qk-rope-head-dim -1 | query elements with rotary encoding: -1",
        "--capability 9.0 --use-mla --qk-nope-head-dim -1 | query elements without rotary encoding:"
            + " -1",
        "--capability 9.0 --dcp-comm-backend ring | --dcp-comm-backend: unknown value 'ring'",
        "--capability 9.0 -ac { | attention_config: it is cut: its JSON has no end, line 1",
        "--capability 9.0 -ac [] | attention_config: [], wanted a JSON object",
      })
  void whatWouldNotCountIsRefused(String arguments, String message) {
    CommandRun run = run("select " + arguments);

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err()).contains(message).doesNotContain("REDACTED");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "--dcp-comm-backend a2a | FLASH_ATTN_MLA: dcp_comm_backend='a2a' requires",
        "--dcp 2 --cp-kv-cache-interleave-size 24 | FLASH_ATTN_MLA: block_size 16 must be at least",
      })
  void anExplanationAlsoSaysThatRanksCannotShareASequence(String arguments, String objection) {
    CommandRun run = run("explain --capability 9.0 --use-mla " + arguments);

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.out())
        .contains("Chosen: none; ranks cannot share a sequence so:")
        .contains(objection)
        .doesNotContain("Chosen: FLASH_ATTN_MLA");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "--capability 9.0 --attention-backend zzzz | Unknown attention backend: 'ZZZZ'",
        "--capability 9.0 --model zzzz | unknown model 'zzzz'; known are gemma-3-4b,",
        "--capability 9.0 --dtype zzzz | --dtype: unknown value 'zzzz'; known are",
        "--capability 9.0 --kv-cache-dtype zzzz | unknown value 'zzzz'; known are auto",
        "--capability 9.0 --assume zzzz | unknown package 'zzzz' of platform cuda; known are",
        "--capability 9.0 -ac {\"zzzz\":1} | unknown key 'zzzz' of attention_config; known are",
        "--capability 9.0 --zzzz | unknown option '--zzzz'",
      })
  void whatResemblesNothingHasNoNearestName(String arguments, String message) {
    CommandRun run = run("select " + arguments);

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err()).contains(message).doesNotContain("nearest");
  }

  @Test
  void ranksShareNoDecodesOfABackendThatReturnsNoLogSumExp() {
    Asking.requireInstalled(Platform.ROCM);
    String rocm = "select --arch gfx942 --use-mla --attention-backend ROCM_AITER_MLA";

    CommandRun run = run(rocm + " --dcp 2");

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err())
        .contains(
            "Decode Context Parallelism (DCP) requires attention implementations to return the"
                + " softmax LSE during decode, but ROCM_AITER_MLA does not. Try a different backend"
                + " by setting --attention-backend or disable DCP.");
    assertThat(run(rocm).status()).isZero();
  }

  @Test
  void anExplanationOfSharedSequencesThatFitNamesTheChoice() {
    CommandRun run =
        run("explain --capability 9.0 --use-mla --dcp 2 --cp-kv-cache-interleave-size 16");

    assertThat(run.status()).isZero();
    assertThat(run.out()).contains("Chosen: FLASH_ATTN_MLA");
  }

  @Test
  void aPlatformWithoutPackagesSaysSo() {
    Asking.requireInstalled(Platform.CPU);

    assertThat(run("select --platform cpu --assume fa3").err())
        .contains("--assume: unknown package 'fa3' of platform cpu, which has none");
  }

  @Test
  void aPairThatCannotBeIsRefusedWithItsReasonsAsJson() throws IOException {
    CommandRun run = run("compose FLASHMLA FLASH_ATTN --format json");

    assertThat(run.status()).isEqualTo(2);
    JsonNode first = MAPPER.readTree(run.out()).path("reasons").path(0);
    assertThat((Iterable<String>) first::fieldNames)
        .containsExactly("code", "text", "seen", "wanted");
    assertThat(first.path("text").asText()).isEqualTo("only one child does latent attention");
    assertThat(first.path("seen").asText()).isEqualTo("FLASHMLA");
  }

  @Test
  void aPairThatIsNamedTakesNoOtherBackends() {
    CommandRun run = run("compose CPU_ATTN CPU_ATTN --attention-backend FLASH_ATTN");

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err()).contains("compose takes its two backends by name, and no others beside");
  }

  @Test
  void anUnknownKeyNamesTheNearest() {
    assertThat(run("select --capability 9.0 -ac.bakend X").err())
        .contains("unknown option '-ac.bakend'")
        .contains("'-ac.backend'");
  }

  /** The reference goes on with sizes of zero where no model is known; a layer has its sizes. */
  @Test
  void aLatentLayerWithoutSizesIsRefused() {
    CommandRun run =
        run(
            "select --capability 10.0 --use-mla --qk-nope-head-dim 0 --qk-rope-head-dim 0"
                + " --v-head-dim 0");

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err())
        .isEqualToIgnoringNewLines("bifocal: --v-head-dim: 0, wanted at least 1 (INVALID_OPTION)");
  }
}
