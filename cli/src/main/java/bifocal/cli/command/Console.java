package bifocal.cli.command;

import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * The streams of one run of the command.
 *
 * @param in what {@code -} reads
 * @param out results: text or JSON
 * @param err everything else
 */
public record Console(InputStream in, PrintStream out, PrintStream err) {

  /** The streams of this process; results are UTF-8 whatever the locale. */
  public static Console ofProcess() {
    return new Console(
        System.in,
        new PrintStream(
            new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)),
            true,
            StandardCharsets.UTF_8),
        System.err);
  }
}
