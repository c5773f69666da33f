package bifocal.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.cli.command.CommandRun;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code --backend auto}. */
class SelectionsTest {
  @TempDir private Path folder;

  @Test
  void automaticBackendIsTheOneThatSelectionTakes() throws IOException {
    CommandRun run = SmallReplay.in(folder, "--backend=auto", "--format=json");
    assertThat(run.status()).as(run.err()).isZero();
    assertThat(new JsonMapper().readTree(run.out()).at("/backends/0/backend").asText())
        .isEqualTo("FLEX_CPU_ATTN");
  }
}
