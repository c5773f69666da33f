package bifocal.cli.command;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.util.List;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

class CommandRunnerTest {

  @Test
  void whatACommandReturnsIsItsStatus() {
    assertThat(run(() -> 0, "ask").status()).isZero();
    assertThat(run(() -> 1, "ask").status()).isOne();
  }

  @Test
  void aRefusalIsOneLineOnTheErrorStream() {
    CommandRun run = run(CommandRunnerTest::refuse, "ask");

    assertThat(run)
        .isEqualTo(
            new CommandRun(
                2, "", line("bifocal: request 3: 7, wanted at most 5 (QUERY_EXCEEDS_SEQ)")));
  }

  @Test
  void aRefusalInJsonIsOneObjectOnTheOutputStream() {
    CommandRun run = run(CommandRunnerTest::refuse, "ask", "--format", "json");

    assertThat(run)
        .isEqualTo(
            new CommandRun(
                2,
                line(
                    "{\"error\":{\"code\":\"QUERY_EXCEEDS_SEQ\",\"message\":"
                        + "\"request 3: 7, wanted at most 5\"}}"),
                ""));
  }

  @Test
  void aCommandAboutRequestsNamesTheOneAtFault() {
    assertThat(run(CommandRunnerTest::refuse, "ask-each", "--format=json").out())
        .contains("\"request\":3}");
    assertThat(run(CommandRunnerTest::fault, "ask-each", "--format=json").out())
        .contains("\"request\":null}");
  }

  @Test
  void moreKeysStandBesideTheError() {
    Callable<Integer> command =
        () -> {
          throw CliFailure.of(ErrorCode.NO_VALID_BACKEND, "none").with("candidates", List.of("X"));
        };

    assertThat(run(command, "ask", "--format=json").out())
        .isEqualTo(
            line(
                "{\"error\":{\"code\":\"NO_VALID_BACKEND\",\"message\":\"none\"},"
                    + "\"candidates\":[\"X\"]}"));
  }

  @Test
  void aFaultOfOursIsNotARefusal() {
    CommandRun run = run(CommandRunnerTest::fault, "ask");

    assertThat(run.status()).isOne();
    assertThat(run.err()).startsWith("bifocal: fault in bifocal:").hasLineCount(1);
  }

  @Test
  void anErrorOfTheMachineIsAFaultToo() {
    Callable<Integer> command =
        () -> {
          throw new StackOverflowError();
        };

    CommandRun run = run(command, "ask", "--format", "json");

    assertThat(run.status()).isOne();
    assertThat(run.out()).contains("\"code\":\"INTERNAL\"").hasLineCount(1);
  }

  @Test
  void debugAddsTheStackTrace() {
    assertThat(run(CommandRunnerTest::refuse, "ask", "--debug").err())
        .contains("at bifocal.cli.command.CommandRunnerTest");
  }

  @Test
  void anUnknownOptionNamesTheNearest() {
    CommandRun run = run(() -> 0, "ask", "--fromat", "json");

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err())
        .isEqualTo(
            line(
                "bifocal: unknown option '--fromat'; the nearest known one is '--format' (INVALID_OPTION)"));
  }

  @Test
  void anUnknownOptionIsRefusedInTheFormatAskedFor() {
    assertThat(run(() -> 0, "ask", "--format=json", "--debgu").out())
        .startsWith("{\"error\":{\"code\":\"INVALID_OPTION\"")
        .contains("'--debug'");
  }

  @Test
  void anUnknownCommandNamesTheNearest() {
    assertThat(run(() -> 0, "aks").err()).contains("unknown command 'aks'").contains("'ask'");
  }

  @Test
  void aStrayArgumentIsRefused() {
    CommandRun run = run(() -> 0, "ask", "more");

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err()).isEqualTo(line("bifocal: stray argument 'more' (INVALID_OPTION)"));
  }

  @Test
  void anUnknownFormatIsRefusedWithTheKnownOnes() {
    CommandRun run = run(() -> 0, "ask", "--format", "xml");

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err()).contains("xml").containsIgnoringCase("json").hasLineCount(1);
  }

  @Test
  void anOptionWithoutItsValueIsRefused() {
    assertThat(run(() -> 0, "ask", "--format").status()).isEqualTo(2);
  }

  private static int refuse() {
    throw BifocalException.ofRequest(ErrorCode.QUERY_EXCEEDS_SEQ, 3, 7, "at most 5");
  }

  private static int fault() {
    throw new IllegalStateException("a wheel came off");
  }

  private static String line(String text) {
    return text + System.lineSeparator();
  }

  private static CommandRun run(Callable<Integer> command, String... arguments) {
    return CommandRun.of(
        "",
        console ->
            new CommandRunner(
                    new CommandLine(new Root())
                        .addSubcommand(new Ask(command))
                        .addSubcommand(new AskEach(command)),
                    console)
                .run(arguments));
  }

  @Command(name = "root")
  private static final class Root {}

  @Command(name = "ask")
  private static final class Ask implements Callable<Integer> {
    private final Callable<Integer> command;
    @Mixin private OutputOptions output;

    Ask(Callable<Integer> command) {
      this.command = command;
    }

    @Override
    public Integer call() throws Exception {
      return command.call();
    }
  }

  @Command(name = "ask-each")
  private static final class AskEach implements Callable<Integer>, NamesRequests {
    private final Callable<Integer> command;
    @Mixin private OutputOptions output;

    AskEach(Callable<Integer> command) {
      this.command = command;
    }

    @Override
    public Integer call() throws Exception {
      return command.call();
    }
  }
}
