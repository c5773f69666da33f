package bifocal.cli.command;

import java.io.InputStream;
import java.io.PrintStream;

/**
 * The streams of one run of the command.
 *
 * @param in what {@code -} reads
 * @param out results: text or JSON
 * @param err everything else
 */
public record Console(InputStream in, PrintStream out, PrintStream err) {}
