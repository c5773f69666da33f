package bifocal.cli.command;

import picocli.CommandLine.Option;

/** The options of a command that writes a result; mix it in. */
public final class OutputOptions {
  @Option(
      names = "--format",
      paramLabel = "text|json",
      description = "How to write the result: text (default) or json.")
  private OutputFormat format = OutputFormat.TEXT;

  /** How to write the result. */
  public OutputFormat format() {
    return format;
  }
}
