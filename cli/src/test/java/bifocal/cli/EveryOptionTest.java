package bifocal.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import bifocal.cli.command.CommandRun;
import bifocal.cli.command.Console;
import bifocal.cli.command.Installed;
import bifocal.core.device.Platform;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine.Model.OptionSpec;

/**
 * Every option of every command with values that cannot be: what is not done is refused in one
 * line, with a code, and in words that name no class.
 */
class EveryOptionTest {
  private static final String TRACE = "ContextTokens,GeneratedTokens\n9,2\n";

  /** Options that only show something, whatever their value. */
  private static final List<String> SHOWN = List.of("--help", "--version", "--debug");

  /** Takes minutes for what it accepts; its own test asks it over suites that measure nothing. */
  private static final String MEASURES = "bench";

  /** These write: nothing of this test shall, except below its own folder. */
  private static final List<String> WRITTEN = List.of("--report", "--out", "--json", "--docs");

  @TempDir static Path folder;
  private static List<String> values = List.of();

  @BeforeAll
  static void files() throws IOException {
    Installed.require(Platform.CPU);
    Path text = Files.writeString(folder.resolve("text"), "hello");
    Files.writeString(folder.resolve("trace.csv"), TRACE);
    Files.writeString(folder.resolve("spec.json"), "{\"requests\":[]}");
    values =
        List.of(
            "",
            "x",
            "-1",
            "1.5",
            "99999999999",
            "99999999999999999999",
            folder.toString(),
            text.toString(),
            text.resolve("below").toString(),
            folder.resolve("none").resolve("below").toString());
  }

  @TestFactory
  Stream<DynamicTest> isAnsweredInOneLine() {
    Console nobody =
        new Console(
            InputStream.nullInputStream(),
            new PrintStream(PrintStream.nullOutputStream()),
            new PrintStream(PrintStream.nullOutputStream()));
    return Main.commands(nobody).getSubcommands().entrySet().stream()
        .filter(command -> !command.getKey().equals(MEASURES))
        .flatMap(
            command ->
                command.getValue().getCommandSpec().options().stream()
                    .filter(option -> !SHOWN.contains(option.longestName()))
                    .filter(option -> !shared(command.getKey(), option.longestName()))
                    .map(option -> answered(command.getKey(), option)));
  }

  /** The commands about selection read the same options; one of them is enough. */
  private static boolean shared(String command, String option) {
    return List.of("explain", "compose").contains(command)
        && !List.of("--policy", "--model", "--head-size", "--attention-config").contains(option);
  }

  private static DynamicTest answered(String command, OptionSpec option) {
    String name = option.longestName();
    return dynamicTest(
        command + " " + name,
        () ->
            values.stream()
                .filter(value -> !WRITTEN.contains(name) || value.isEmpty() || absolute(value))
                .forEach(value -> answered(command, name, value)));
  }

  private static boolean absolute(String value) {
    return Path.of(value).isAbsolute();
  }

  private static void answered(String command, String option, String value) {
    List<String> arguments = new ArrayList<>(List.of(command));
    arguments.addAll(needed(command));
    arguments.removeIf(own -> own.startsWith(option + "="));
    arguments.add(option + "=" + value);
    CommandRun run =
        CommandRun.of("", console -> Main.run(console, arguments.toArray(String[]::new)));

    String told = run.err() + run.out();
    assertThat(run.status()).as("%s%n%s", arguments, told).isIn(0, 2);
    assertThat(told)
        .as("%s", arguments)
        .doesNotContain("Exception", "java.", "\tat ", "is not an int", "is not a long", "null'");
    if (run.status() == 2) {
      assertThat(run.err().lines().toList())
          .as("%s", arguments)
          .singleElement()
          .asString()
          .matches("bifocal: .*( \\([A-Z_]+\\)|Reasons?: .*)");
    }
  }

  /** What a command must have to get as far as the option. */
  private static List<String> needed(String command) {
    return switch (command) {
      case "route" -> List.of("--spec=" + folder.resolve("spec.json"));
      case "attend" ->
          List.of("--in=" + folder.resolve("text"), "--out=" + folder.resolve("out.safetensors"));
      case "replay" ->
          List.of(
              "--trace=" + folder.resolve("trace.csv"),
              "--first=0",
              "--requests=1",
              "--report=" + folder.resolve("report"));
      case "compose" -> List.of("FLEX_ATTENTION", "CPU_ATTN", "--platform=cpu");
      case "select", "explain" -> List.of("--platform=cpu");
      default -> List.of();
    };
  }
}
