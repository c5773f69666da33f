package bifocal.cli.command;

import java.io.InputStream;
import java.io.PrintStream;
import java.util.Map;

/**
 * The streams of one run of the command, and its environment.
 *
 * @param in what {@code -} reads
 * @param out results: text or JSON
 * @param err everything else
 * @param environment variables that are set
 */
public record Console(
    InputStream in, PrintStream out, PrintStream err, Map<String, String> environment) {

  /** Streams in an empty environment. */
  public Console(InputStream in, PrintStream out, PrintStream err) {
    this(in, out, err, Map.of());
  }

  /** The streams of this process; results are UTF-8 whatever the locale. */
  public static Console ofProcess() {
    return new Console(System.in, StandardOutput.ofProcess(), System.err, System.getenv());
  }
}
