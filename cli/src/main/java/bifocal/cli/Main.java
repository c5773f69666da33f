package bifocal.cli;

import bifocal.cli.attend.AttendCommand;
import bifocal.cli.bench.BenchCommand;
import bifocal.cli.command.CommandRunner;
import bifocal.cli.command.Console;
import bifocal.cli.doctor.DoctorCommand;
import bifocal.cli.replay.ReplayCommand;
import bifocal.cli.route.RouteCommand;
import bifocal.cli.select.ComposeCommand;
import bifocal.cli.select.ExplainCommand;
import bifocal.cli.select.SelectCommand;
import bifocal.cli.select.TablesCommand;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/** The {@code bifocal} command. */
@Command(
    name = "bifocal",
    version = "bifocal 0.1.0-SNAPSHOT",
    description = "Selects, composes, routes and runs attention backends.")
public final class Main {

  private Main() {}

  public static void main(String[] arguments) {
    System.exit(run(Console.ofProcess(), arguments));
  }

  /**
   * Runs one command line over given streams.
   *
   * @return the exit status: 0 done, 1 a check failed or a fault of Bifocal, 2 refused
   */
  public static int run(Console console, String... arguments) {
    return new CommandRunner(commands(console), console).run(arguments);
  }

  static CommandLine commands(Console console) {
    return new CommandLine(new Main())
        .addSubcommand(SelectCommand.over(console))
        .addSubcommand(ExplainCommand.over(console))
        .addSubcommand(new TablesCommand(console))
        .addSubcommand(ComposeCommand.over(console))
        .addSubcommand(new RouteCommand(console))
        .addSubcommand(new AttendCommand(console))
        .addSubcommand(new ReplayCommand(console))
        .addSubcommand(BenchCommand.over(console))
        .addSubcommand(DoctorCommand.over(console));
  }
}
