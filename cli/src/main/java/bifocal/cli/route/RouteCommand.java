package bifocal.cli.route;

import bifocal.cli.backend.BackendCatalog;
import bifocal.cli.backend.CalibrationFile;
import bifocal.cli.backend.MeasuredRoutes;
import bifocal.cli.command.Console;
import bifocal.cli.command.ExitStatus;
import bifocal.cli.command.JsonText;
import bifocal.cli.command.NamesRequests;
import bifocal.cli.command.OutputOptions;
import bifocal.cli.command.PolicyName;
import bifocal.core.capsule.StepCapsule;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.FileFailure;
import bifocal.core.safetensors.Safetensors;
import bifocal.routing.MMPrefixAttentionRouting;
import io.vavr.collection.Vector;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.function.Supplier;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.Spec;

/** Routes a batch that a file describes, and says why. */
@Command(
    name = "route",
    description = "Says which child a batch, or each of its requests, goes to, and why.",
    footer = {
      "",
      "The batch is a JSON object:",
      "  {\"policy\":\"mm-prefix\",\"layers\":{\"sliding_window\":1024,\"mask\":\"clamp_past\",",
      "   \"head_size\":256,\"dtype\":\"bf16\"},",
      "   \"split\":true,\"lowering\":false,\"live\":1,",
      "   \"requests\":[{\"query_len\":5,\"seq_len\":12,\"images\":[[0,8]]}]}",
      "Only requests, with query_len and seq_len, must be given. Images are inclusive",
      "and absolute. Requests from live on are padding. Head size and type count for",
      "measured times alone."
    })
public final class RouteCommand implements Callable<Integer>, NamesRequests {
  private static final String OPTION = "--spec";
  private static final String STANDARD_INPUT = "-";

  private final Console console;
  private final Supplier<BackendCatalog> catalog;

  @Spec private CommandSpec command = CommandSpec.create();

  @Option(
      names = OPTION,
      required = true,
      paramLabel = "FILE|-",
      description =
          "The batch to route, or a step that was captured; - reads it from the standard input.")
  private String spec = STANDARD_INPUT;

  @Option(
      names = "--calibration",
      paramLabel = "FILE",
      description =
          "Let times that bench --calibrate measured on this host choose between routes that are"
              + " right; not with another policy than mm-prefix.")
  private Optional<Path> calibration = Optional.empty();

  @Option(
      names = "--backend",
      paramLabel = "NAME|A+B",
      description = "With --calibration: the pair (default ${DEFAULT-VALUE}).")
  private String backend = "FLEX_CPU_ATTN";

  @Option(
      names = "--platform",
      paramLabel = "NAME",
      description = "With --calibration: where it was measured, cpu or cuda (default cpu).")
  private Platform platform = Platform.CPU;

  @Mixin private OutputOptions output = new OutputOptions();

  /** The command over some streams, with the backends of the class path. */
  public RouteCommand(Console console) {
    this(console, BackendCatalog::present);
  }

  /** The command with other backends. */
  RouteCommand(Console console, Supplier<BackendCatalog> catalog) {
    this.console = console;
    this.catalog = catalog;
  }

  @Override
  public Integer call() {
    requireCalibration();
    RouteSpec read = calibration.map(table -> measured(read(), table)).orElseGet(this::read);
    RouteReport report = RouteReport.of(read.route(), read.batch());
    switch (output.format()) {
      case TEXT -> console.out().print(report.text());
      case JSON -> console.out().println(JsonText.of(report));
    }
    return ExitStatus.DONE.number();
  }

  private void requireCalibration() {
    ParseResult given = command.commandLine().getParseResult();
    for (String option : Vector.of("--backend", "--platform")) {
      if (calibration.isEmpty() && given.hasMatchedOption(option)) {
        throw BifocalException.of(
            ErrorCode.INVALID_OPTION, option, "without --calibration", "both, or neither");
      }
    }
  }

  /** The same batch, routed by the times of a pair's children. */
  private RouteSpec measured(RouteSpec read, Path table) {
    if (!(read.policy() instanceof MMPrefixAttentionRouting routing)) {
      throw MeasuredRoutes.refusedBeside(
          "another policy", "policy " + PolicyName.MM_PREFIX.label());
    }
    return read.routedBy(
        MeasuredRoutes.of(
            catalog.get().find(backend, routing),
            backend,
            routing,
            CalibrationFile.validHere(table, platform, String.join(" ", command.root().version())),
            Vector.of(read.layers())));
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
