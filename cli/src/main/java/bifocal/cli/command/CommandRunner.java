package bifocal.cli.command;

import bifocal.core.error.ErrorCode;
import bifocal.core.error.NearestName;
import io.vavr.control.Option;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.UnmatchedArgumentException;

/**
 * Runs a command line over given streams. Whatever goes wrong ends as one message: a line on the
 * error stream or, when JSON was asked for, an object on the output stream; {@code --debug} adds
 * the stack trace on the error stream.
 */
public final class CommandRunner {
  private static final String DEBUG = "--debug";
  private static final Set<ErrorCode> TO_THE_LETTER =
      Set.of(ErrorCode.INVALID_SELECTION, ErrorCode.NO_VALID_BACKEND);

  private final CommandLine commands;
  private final Console console;

  /** A runner for these commands, each with {@code --help} and {@code --debug}. */
  public CommandRunner(CommandLine commands, Console console) {
    this.commands = commands;
    this.console = console;
    commands
        .getCommandSpec()
        .addOption(everywhere("Show this help.", "-h", "--help").usageHelp(true).build())
        .addOption(everywhere("Add the stack trace to a refusal or a fault.", DEBUG).build())
        .addOption(flag("Show the version.", "-V", "--version").versionHelp(true).build());
  }

  private static OptionSpec.Builder everywhere(String description, String... names) {
    return flag(description, names).scopeType(ScopeType.INHERIT);
  }

  private static OptionSpec.Builder flag(String description, String... names) {
    return OptionSpec.builder(names).type(boolean.class).description(description);
  }

  /**
   * Runs one command line; without arguments it shows what there is.
   *
   * @return the exit status
   */
  public int run(String... arguments) {
    int status = execute(arguments);
    Option<String> loss =
        console.out() instanceof StandardOutput results ? results.loss() : Option.none();
    loss.forEach(
        why -> console.err().println("bifocal: standard output cannot be written: " + why));
    return loss.isDefined() ? Math.max(status, ExitStatus.FAILED.number()) : status;
  }

  private int execute(String... arguments) {
    List<String> given = List.of(arguments);
    commands
        .setOut(writer(console.out()))
        .setErr(writer(console.err()))
        .setExpandAtFiles(false)
        .setCaseInsensitiveEnumValuesAllowed(true)
        .setParameterExceptionHandler(
            (refusal, all) -> end(refused(refusal), refusal.getCommandLine(), given))
        .setExecutionExceptionHandler(
            (thrown, command, parsed) -> end(CliFailure.of(thrown), command, given));
    try {
      if (given.isEmpty()) {
        commands.usage(console.out());
        return ExitStatus.DONE.number();
      }
      return commands.execute(arguments);
    } catch (StackOverflowError | OutOfMemoryError | LinkageError fault) {
      return end(CliFailure.of(fault), commands, given);
    } finally {
      console.out().flush();
      console.err().flush();
    }
  }

  private static PrintWriter writer(PrintStream stream) {
    return new PrintWriter(stream, true, StandardCharsets.UTF_8);
  }

  private int end(CliFailure failure, CommandLine command, List<String> arguments) {
    switch (OutputFormat.asked(arguments)) {
      case TEXT -> console.err().println("bifocal: " + line(failure));
      case JSON -> console.out().println(JsonText.of(object(failure, command)));
    }
    if (arguments.contains(DEBUG)) {
      failure.printStackTrace(console.err());
    }
    return failure.status().number();
  }

  /** The message and its code; those that users of other servers look for stay to the letter. */
  private static String line(CliFailure failure) {
    String message = oneLine(failure.getMessage());
    return TO_THE_LETTER.contains(failure.code()) ? message : message + " (" + failure.code() + ")";
  }

  /** A message that quotes its input cannot break the line or drive the terminal. */
  private static String oneLine(String message) {
    return message.strip().replaceAll("\\p{Cntrl}+", " ");
  }

  private static Map<String, Object> object(CliFailure failure, CommandLine command) {
    Map<String, Object> error = new LinkedHashMap<>();
    error.put("code", failure.code());
    error.put("message", failure.getMessage());
    if (command.getCommand() instanceof NamesRequests) {
      error.put("request", failure.request());
    }
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("error", error);
    failure.beside().forEach(object::put);
    return object;
  }

  private static CliFailure refused(ParameterException refusal) {
    Option<String> unknown = unknown(refusal);
    String message =
        unknown.isDefined()
            ? unknownMessage(unknown.get(), refusal.getCommandLine().getCommandSpec())
            : ArgumentRefusal.message(refusal);
    return CliFailure.of(ErrorCode.INVALID_OPTION, message).causedBy(refusal);
  }

  private static Option<String> unknown(ParameterException refusal) {
    return refusal instanceof UnmatchedArgumentException unmatched
        ? Option.ofOptional(unmatched.getUnmatched().stream().findFirst())
        : Option.none();
  }

  private static String unknownMessage(String given, CommandSpec spec) {
    boolean option = given.startsWith("-");
    String name = option && given.contains("=") ? given.substring(0, given.indexOf('=')) : given;
    Set<String> known = option ? spec.optionsMap().keySet() : spec.subcommands().keySet();
    String advice = NearestName.advice(name, known);
    String what =
        option ? "unknown option" : known.isEmpty() ? "stray argument" : "unknown command";
    return what + " '" + name + "'" + (advice.isEmpty() ? "" : "; " + advice);
  }
}
