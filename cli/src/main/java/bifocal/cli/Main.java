package bifocal.cli;

import bifocal.cli.command.CommandRunner;
import bifocal.cli.command.Console;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/** The {@code bifocal} command. */
@Command(
    name = "bifocal",
    version = "bifocal 0.1.0-SNAPSHOT",
    mixinStandardHelpOptions = true,
    description = "Selects, composes, routes and runs attention backends.")
public final class Main implements Runnable {
  private final Console console;

  private Main(Console console) {
    this.console = console;
  }

  public static void main(String[] arguments) {
    System.exit(run(new Console(System.in, System.out, System.err), arguments));
  }

  /**
   * Runs one command line over given streams.
   *
   * @return the exit status: 0 done, 1 a check failed or a fault of Bifocal, 2 refused
   */
  public static int run(Console console, String... arguments) {
    return new CommandRunner(commands(console), console).run(arguments);
  }

  private static CommandLine commands(Console console) {
    return new CommandLine(new Main(console));
  }

  @Override
  public void run() {
    CommandLine.usage(this, console.out());
  }
}
