package bifocal.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.cli.command.CommandRun;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ReplayRefusalTest {

  @TempDir private Path folder;

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "--first=-1 | --first: -1, wanted 0..2",
        "--first=3 | --first: 3, wanted 0..2",
        "--requests=0 | --requests: 0, wanted 1..3",
        "--requests=4 | --requests: 4, wanted 1..3",
        "--report= | --report: '' names no folder",
        "--no-capture-tensors | --no-capture-tensors: no --capture",
        "--compare=, | backend '', character 1: the end",
        "--compare=FLEX_ATTENTION, | backend '', character 1: the end",
        "--model=nobody | --model: 'nobody', wanted a known id"
      })
  void anOptionThatCannotBeIsNamed(String option, String message) throws IOException {
    CommandRun run = SmallReplay.in(folder, option);

    assertThat(run.err()).startsWith("bifocal: " + message).hasLineCount(1);
    assertThat(run.status()).isEqualTo(2);
  }

  @Test
  void aFileIsNoFolderForAReport() throws IOException {
    Path file = Files.writeString(folder.resolve("notes"), "kept");

    CommandRun run = SmallReplay.in(folder, "--report=" + file);

    assertThat(run.err())
        .contains("report folder '" + file + "': a file, wanted a writable folder");
    assertThat(run.status()).isEqualTo(2);
    assertThat(file).hasContent("kept");
  }

  @Test
  void aStepHoldsNoMoreThanTheWindowHas() throws IOException {
    CommandRun run =
        SmallReplay.in(
            folder,
            "--max-num-batched-tokens=" + Integer.MAX_VALUE,
            "--max-num-seqs=" + Integer.MAX_VALUE);

    assertThat(run.err()).doesNotContain("fault");
    assertThat(run.status()).isZero();
  }
}
