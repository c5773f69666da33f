package bifocal.cli.bench;

import bifocal.cli.backend.HostProvenance;
import bifocal.cli.command.Console;
import bifocal.cli.command.ExitStatus;
import bifocal.cli.command.JsonText;
import bifocal.cli.command.OutputOptions;
import bifocal.cli.replay.ReplayedSteps;
import bifocal.core.bench.BenchmarkReport;
import bifocal.core.bench.BenchmarkRequest;
import bifocal.core.bench.BenchmarkSuite;
import bifocal.core.bench.Calibration;
import bifocal.core.bench.CalibrationJson;
import bifocal.core.bench.ChildTime;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.FileFailure;
import bifocal.core.safetensors.Safetensors;
import io.vavr.collection.Seq;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code bifocal bench}. */
@Command(
    name = "bench",
    sortOptions = false,
    description = "Measures attention side by side with its peers and with the machine's peaks.")
public final class BenchCommand implements Callable<Integer> {
  private static final String OPTION = "--json";

  /** System property: folder of the peers' libraries. */
  static final String PEERS = "bifocal.bench.peers";

  private final Console console;
  private final Iterable<BenchmarkSuite> suites;

  @Option(
      names = "--suite",
      paramLabel = "cpu|gpu|host",
      description = "What to measure (default ${DEFAULT-VALUE}).")
  private Suite suite = Suite.cpu;

  @Option(names = "--quick", description = "A small part, in less than a minute.")
  private boolean quick;

  @Option(
      names = "--calibrate",
      description =
          "Time the children of composites one by one, and write the table to the file of --json"
              + " (default target/calibration-SUITE.json), for replay --calibration.")
  private boolean calibrate;

  @Option(
      names = "--only",
      paramLabel = "TEXT",
      description = "Works whose name holds this text; default: all.")
  private Optional<String> only = Optional.empty();

  @Option(
      names = OPTION,
      paramLabel = "FILE",
      description = "Also write the result as JSON to this file.")
  private Optional<Path> file = Optional.empty();

  @Option(
      names = "--docs",
      paramLabel = "DIR",
      description = "Also write tables, plot and results into this folder of documents.")
  private Optional<Path> docs = Optional.empty();

  @Mixin private final OutputOptions output = new OutputOptions();

  @Spec private CommandSpec spec = CommandSpec.create();

  /** The command over some suites. */
  BenchCommand(Console console, Iterable<BenchmarkSuite> suites) {
    this.console = console;
    this.suites = suites;
  }

  /** The command over the suites of the class path. */
  public static BenchCommand over(Console console) {
    return new BenchCommand(console, ServiceLoader.load(BenchmarkSuite.class));
  }

  @Override
  public Integer call() {
    BenchmarkRequest request =
        new BenchmarkRequest(
            quick,
            io.vavr.control.Option.ofOptional(only),
            io.vavr.control.Option.of(System.getProperty(PEERS)).map(Path::of),
            console.err()::println,
            ReplayedSteps.ofTheDefault());
    if (calibrate) {
      return calibrate(request);
    }
    file.ifPresent(BenchCommand::requireWritable);
    docs.ifPresent(folder -> new Documents(folder, suite).requireSection());
    BenchmarkReport report = find().run(request);
    String json = JsonText.of(report.json());
    file.ifPresent(to -> write(to, json + System.lineSeparator()));
    docs.ifPresent(
        folder -> report.page().forEach(page -> new Documents(folder, suite).write(json, page)));
    switch (output.format()) {
      case TEXT -> console.out().print(report.text());
      case JSON -> console.out().println(json);
    }
    return ExitStatus.DONE.number();
  }

  private Integer calibrate(BenchmarkRequest request) {
    if (docs.isPresent()) {
      throw BifocalException.of(
          ErrorCode.INVALID_OPTION, "--docs", "with --calibrate", "one of the two");
    }
    Path to = file.orElse(Path.of("target", "calibration-" + suite + ".json"));
    makeFolder(to);
    requireWritable(to);
    Seq<ChildTime> times = find().calibrate(request);
    if (times.isEmpty()) {
      throw request.noSuchWork();
    }
    CommandSpec root = spec.root();
    Calibration table =
        new Calibration(
            HostProvenance.now(
                suite.platform(),
                String.join(" ", root.version()),
                "bifocal bench --calibrate --suite " + suite + (quick ? " --quick" : "")),
            times);
    String json = CalibrationJson.write(table);
    write(to, json);
    switch (output.format()) {
      case TEXT -> {
        console.out().print(CalibrationText.of(table));
        console.out().println("written to " + to);
      }
      case JSON -> console.out().print(json);
    }
    return ExitStatus.DONE.number();
  }

  private static void makeFolder(Path to) {
    Path folder = to.toAbsolutePath().getParent();
    try {
      if (folder != null) {
        Files.createDirectories(folder);
      }
    } catch (IOException e) {
      throw FileFailure.writing(OPTION, to, e);
    }
  }

  /** Says what is wrong with a file before anything is measured for it. */
  private static void requireWritable(Path to) {
    try {
      Safetensors.requireWritable(to);
    } catch (BifocalException e) {
      throw e.in(OPTION);
    }
  }

  private BenchmarkSuite find() {
    for (BenchmarkSuite found : suites) {
      if (found.name().equals(suite.name())) {
        return found;
      }
    }
    throw BifocalException.of(
        ErrorCode.NATIVE_MISSING, "benchmarks", "no suite " + suite + " in this build", "one");
  }

  private static void write(Path to, String json) {
    try {
      Files.writeString(to, json);
    } catch (IOException e) {
      throw FileFailure.writing(OPTION, to, e);
    }
  }
}
