package bifocal.cli.route;

import bifocal.cli.command.Console;
import bifocal.cli.command.ExitStatus;
import bifocal.cli.command.JsonText;
import bifocal.cli.command.NamesRequests;
import bifocal.cli.command.OutputOptions;
import bifocal.core.capsule.StepCapsule;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.FileFailure;
import bifocal.core.safetensors.Safetensors;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Routes a batch that a file describes, and says why. */
@Command(
    name = "route",
    description = "Says which child a batch, or each of its requests, goes to, and why.",
    footer = {
      "",
      "The batch is a JSON object:",
      "  {\"policy\":\"mm-prefix\",\"layers\":{\"sliding_window\":1024,\"mask\":\"clamp_past\"},",
      "   \"split\":true,\"lowering\":false,\"live\":1,",
      "   \"requests\":[{\"query_len\":5,\"seq_len\":12,\"images\":[[0,8]]}]}",
      "Only requests, with query_len and seq_len, must be given. Images are inclusive",
      "and absolute. Requests from live on are padding."
    })
public final class RouteCommand implements Callable<Integer>, NamesRequests {
  private static final String OPTION = "--spec";
  private static final String STANDARD_INPUT = "-";

  private final Console console;

  @Option(
      names = OPTION,
      required = true,
      paramLabel = "FILE|-",
      description =
          "The batch to route, or a step that was captured; - reads it from the standard input.")
  private String spec = STANDARD_INPUT;

  @Mixin private OutputOptions output = new OutputOptions();

  /** The command over some streams. */
  public RouteCommand(Console console) {
    this.console = console;
  }

  @Override
  public Integer call() {
    RouteSpec read = read();
    RouteReport report = RouteReport.of(read.route(), read.batch());
    switch (output.format()) {
      case TEXT -> console.out().print(report.text());
      case JSON -> console.out().println(JsonText.of(report));
    }
    return ExitStatus.DONE.number();
  }

  private RouteSpec read() {
    if (spec.equals(STANDARD_INPUT)) {
      return read(Path.of(STANDARD_INPUT), "the standard input", () -> console.in());
    }
    Path file = file();
    return Safetensors.recognises(file)
        ? capsule(file)
        : read(file, "'" + file + "'", () -> Files.newInputStream(file));
  }

  private Path file() {
    try {
      return Path.of(spec);
    } catch (InvalidPathException e) {
      throw FileFailure.naming(OPTION, spec, e);
    }
  }

  private static RouteSpec read(Path file, String name, Source source) {
    try (InputStream in = source.open()) {
      return RouteSpec.read(OPTION + ": " + name, in);
    } catch (IOException e) {
      throw FileFailure.reading(OPTION, file, e);
    }
  }

  private static RouteSpec capsule(Path file) {
    try {
      return RouteSpec.ofCapsule(OPTION + ": '" + file + "'", text(file));
    } catch (IOException e) {
      throw FileFailure.reading(OPTION, file, e);
    }
  }

  private static String text(Path file) {
    try {
      return Safetensors.readMetadata(file)
          .get(StepCapsule.KEY)
          .getOrElseThrow(
              () ->
                  BifocalException.of(
                      ErrorCode.MALFORMED_INPUT,
                      "'" + file + "'",
                      "tensors, but no captured step",
                      "__metadata__." + StepCapsule.KEY));
    } catch (BifocalException e) {
      throw e.in(OPTION);
    }
  }

  private interface Source {
    InputStream open() throws IOException;
  }
}
