package bifocal.cli;

import picocli.CommandLine;
import picocli.CommandLine.Command;

/** The {@code bifocal} command. */
@Command(
    name = "bifocal",
    version = "bifocal 0.1.0-SNAPSHOT",
    mixinStandardHelpOptions = true,
    description = "Selects, composes, routes and runs attention backends.")
final class Main implements Runnable {

  public static void main(String[] arguments) {
    System.exit(new CommandLine(new Main()).execute(arguments));
  }

  @Override
  public void run() {
    CommandLine.usage(this, System.out);
  }
}
