package bifocal.cli.command;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;
import picocli.CommandLine.Command;

class StandardOutputTest {

  @Test
  void resultsThatCannotBeWrittenFailTheCommand() {
    CommandRun run = printing("No space left on device");

    assertThat(run.status()).isOne();
    assertThat(run.err())
        .isEqualToIgnoringNewLines(
            "bifocal: standard output cannot be written: No space left on device");
  }

  @Test
  void aReaderThatHasLeftIsNoFailure() {
    CommandRun run = printing("Broken pipe");

    assertThat(run.status()).isZero();
    assertThat(run.err()).isEmpty();
  }

  private static CommandRun printing(String whatTheSystemSays) {
    OutputStream full =
        new OutputStream() {
          @Override
          public void write(int one) throws IOException {
            throw new IOException(whatTheSystemSays);
          }
        };
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    Console console =
        new Console(
            new ByteArrayInputStream(new byte[0]),
            new StandardOutput(full),
            new PrintStream(err, true, StandardCharsets.UTF_8),
            Map.of());
    int status =
        new CommandRunner(new CommandLine(new Root()).addSubcommand(new Print(console)), console)
            .run("print");
    return new CommandRun(status, "", err.toString(StandardCharsets.UTF_8));
  }

  @Command(name = "all")
  private static final class Root {}

  @Command(name = "print")
  private record Print(Console console) implements Runnable {
    @Override
    public void run() {
      console.out().println("a result");
    }
  }
}
