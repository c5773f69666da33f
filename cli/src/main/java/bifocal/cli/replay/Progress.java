package bifocal.cli.replay;

import bifocal.cli.command.Console;
import java.util.Locale;

/** Says every few seconds how far a replay is; a terminal gets a bar that moves. */
final class Progress {
  private static final long INTERVAL_NANOS = 3_000_000_000L;
  private static final int WIDTH = 32;

  private final Console console;
  private final int requests;
  private final boolean terminal = System.console() != null && System.console().isTerminal();
  private final long start = System.nanoTime();
  private long last = start;

  Progress(Console console, int requests) {
    this.console = console;
    this.requests = requests;
  }

  /** So many steps were run and so many requests have ended. */
  void at(int steps, int ended) {
    long now = System.nanoTime();
    if (terminal) {
      if (now - last > INTERVAL_NANOS / 30 || ended == requests) {
        last = now;
        int filled = WIDTH * ended / requests;
        console
            .err()
            .printf(
                Locale.ROOT,
                "\r[%s%s] %d of %d requests, step %,d",
                "#".repeat(filled),
                ".".repeat(WIDTH - filled),
                ended,
                requests,
                steps);
        console.err().print(ended == requests ? "\n" : "");
        console.err().flush();
      }
    } else if (now - last > INTERVAL_NANOS) {
      last = now;
      console
          .err()
          .printf(
              Locale.ROOT,
              "bifocal: %d of %d requests, step %,d, %.0f s%n",
              ended,
              requests,
              steps,
              (now - start) / 1e9);
    }
  }
}
