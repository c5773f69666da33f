package bifocal.cli.select;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.cli.Main;
import bifocal.cli.command.CommandRun;
import bifocal.core.device.Platform;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import org.junit.jupiter.api.Test;

/** What {@code bifocal compose} says when a pair cannot be, or cannot serve a layer. */
class ComposeRefusalTest {

  @Test
  void everyReasonAgainstAPairIsAnObjectOfItsOwn() throws IOException {
    Asking.requireInstalled(Platform.CPU);
    Asking.requireInstalled(Platform.ROCM);
    CommandRun run = run("compose FLEX_ATTENTION ROCM_ATTN --format json");

    JsonNode refusal = new JsonMapper().readTree(run.out());
    assertThat(run.status()).isEqualTo(2);
    assertThat(refusal.at("/error/code").asText()).isEqualTo("INVALID_COMPOSITION");
    assertThat(refusal.at("/reasons/0/code").asText()).isEqualTo("KV_LAYOUT");
    assertThat(refusal.at("/reasons/0/text").asText()).contains("KV layout");
    assertThat(refusal.at("/reasons/0/seen").asText()).isNotEmpty();
  }

  @Test
  void aLayerIsJudgedOnThisHostWhereNoDeviceIsNamed() {
    Asking.requireInstalled(Platform.CPU);

    CommandRun run = run("compose FLEX_ATTENTION CPU_ATTN --block-size 7");

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err()).contains("block_size not supported");
  }

  private static CommandRun run(String arguments) {
    return CommandRun.of("", console -> Main.run(console, arguments.split(" ")));
  }
}
