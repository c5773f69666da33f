package bifocal.cli.command;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.function.ToIntFunction;

/**
 * One run of a command with its streams captured.
 *
 * @param status exit status
 * @param out what it wrote as its result
 * @param err what it wrote besides
 */
public record CommandRun(int status, String out, String err) {

  /** Runs with {@code stdin} as standard input. */
  public static CommandRun of(String stdin, ToIntFunction<Console> command) {
    return of(stdin, Map.of(), command);
  }

  /** The same, with these variables set. */
  public static CommandRun of(
      String stdin, Map<String, String> environment, ToIntFunction<Console> command) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    int status =
        command.applyAsInt(
            new Console(
                new ByteArrayInputStream(stdin.getBytes(StandardCharsets.UTF_8)),
                new PrintStream(out, true, StandardCharsets.UTF_8),
                new PrintStream(err, true, StandardCharsets.UTF_8),
                environment));
    return new CommandRun(
        status, out.toString(StandardCharsets.UTF_8), err.toString(StandardCharsets.UTF_8));
  }
}
