package bifocal.cli.select;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.cli.Main;
import bifocal.cli.command.CommandRun;
import bifocal.core.device.Platform;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The command from its arguments to its streams and status. */
class SelectCommandTest {
  private static final JsonMapper MAPPER = new JsonMapper();

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
  void anUnknownKeyNamesTheNearest() {
    assertThat(run("select --capability 9.0 -ac.bakend X").err())
        .contains("unknown option '-ac.bakend'")
        .contains("'-ac.backend'");
  }
}
