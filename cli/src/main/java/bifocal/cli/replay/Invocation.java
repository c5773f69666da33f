package bifocal.cli.replay;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.stream.Collectors;

/**
 * The command that was given, as it can be given again.
 *
 * @param command the command line, quoted for a POSIX shell
 * @param version of Bifocal
 * @param started in UTC
 */
record Invocation(String command, String version, String started) {

  /** A command given now. */
  static Invocation of(String program, List<String> arguments, String version) {
    return new Invocation(
        program
            + arguments.stream().map(Invocation::quoted).collect(Collectors.joining(" ", " ", "")),
        version,
        Instant.now().truncatedTo(ChronoUnit.SECONDS).toString());
  }

  private static String quoted(String argument) {
    return argument.matches("[\\w./:=,+@%-]+")
        ? argument
        : "'" + argument.replace("'", "'\\''") + "'";
  }
}
