package bifocal.cli.bench;

import bifocal.cli.command.Console;
import bifocal.cli.command.ExitStatus;
import bifocal.cli.command.JsonText;
import bifocal.cli.command.OutputOptions;
import bifocal.core.bench.BenchmarkReport;
import bifocal.core.bench.BenchmarkRequest;
import bifocal.core.bench.BenchmarkSuite;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code bifocal bench}. */
@Command(
    name = "bench",
    sortOptions = false,
    description = "Measures attention side by side with its peers and with the machine's peaks.")
public final class BenchCommand implements Callable<Integer> {
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
      names = "--only",
      paramLabel = "TEXT",
      description = "Works whose name holds this text; default: all.")
  private Optional<String> only = Optional.empty();

  @Option(
      names = "--json",
      paramLabel = "FILE",
      description = "Also write the result as JSON to this file.")
  private Optional<Path> file = Optional.empty();

  @Option(
      names = "--docs",
      paramLabel = "DIR",
      description = "Also write tables, plot and results into this folder of documents.")
  private Optional<Path> docs = Optional.empty();

  @Mixin private final OutputOptions output = new OutputOptions();

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
    BenchmarkReport report =
        find()
            .run(
                new BenchmarkRequest(
                    quick,
                    io.vavr.control.Option.ofOptional(only),
                    io.vavr.control.Option.of(System.getProperty(PEERS)).map(Path::of),
                    console.err()::println));
    String json = JsonText.of(report.json());
    file.ifPresent(to -> write(to, json));
    docs.ifPresent(
        folder -> report.page().forEach(page -> new Documents(folder, suite).write(json, page)));
    switch (output.format()) {
      case TEXT -> console.out().print(report.text());
      case JSON -> console.out().println(json);
    }
    return ExitStatus.DONE.number();
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
      Files.writeString(to, json + System.lineSeparator());
    } catch (IOException e) {
      throw BifocalException.of(
              ErrorCode.INVALID_OPTION, "--json", String.valueOf(e.getMessage()), "a file to write")
          .causedBy(e);
    }
  }
}
