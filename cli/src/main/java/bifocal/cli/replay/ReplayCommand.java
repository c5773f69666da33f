package bifocal.cli.replay;

import bifocal.cli.backend.BackendCatalog;
import bifocal.cli.backend.CalibrationFile;
import bifocal.cli.backend.MeasuredRoutes;
import bifocal.cli.backend.RunConditions;
import bifocal.cli.backend.RunDevice;
import bifocal.cli.command.Console;
import bifocal.cli.command.ExitStatus;
import bifocal.cli.command.JsonText;
import bifocal.cli.command.OutputOptions;
import bifocal.cli.replay.Replay.Contender;
import bifocal.cli.replay.Replay.Outcome;
import bifocal.cli.replay.Summary.Condition;
import bifocal.cli.replay.Summary.Refused;
import bifocal.composite.guice.BifocalInjector;
import bifocal.composite.guice.PlatformModules;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.NearestName;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.model.ModelCatalog;
import bifocal.core.model.ModelShape;
import bifocal.core.select.ModelTraits;
import bifocal.core.select.Selector;
import bifocal.core.tensor.DType;
import bifocal.routing.Lowering;
import bifocal.routing.MMPrefixAttentionRouting;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Validation;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.Spec;

/** {@code bifocal replay}. */
@Command(
    name = "replay",
    sortOptions = false,
    description =
        "Serves a real multimodal trace through an attention backend: every step is scheduled,"
            + " routed with a reason, executed, and compared with the reference in places.")
public final class ReplayCommand implements Callable<Integer> {
  private static final int BLOCK_SIZE = 64;
  private static final int MOST_LAYERS = 10_000;
  static final String MODEL = "gemma-4-31b";
  static final int FIRST = 128;
  static final int REQUESTS = 16;
  static final int MAX_BATCHED_TOKENS = 2048;
  static final int MAX_SEQS = 16;
  static final long SEED = 1;
  private static final String AUTOMATIC = "auto";
  private static final String DEFAULT_FOLDER = "target/replay";

  private final Console console;

  @Spec private CommandSpec spec = CommandSpec.create();

  @Option(
      names = "--trace",
      paramLabel = "FILE",
      description = "CSV; default: the shipped window of the Azure LMM trace.")
  private Optional<Path> trace = Optional.empty();

  @Option(
      names = "--model",
      paramLabel = "ID",
      description = "Whose shapes (default ${DEFAULT-VALUE}).")
  private String model = MODEL;

  @Option(
      names = "--platform",
      paramLabel = "cpu|cuda",
      description = "Where (default ${DEFAULT-VALUE}).")
  private Platform platform = Platform.CPU;

  @Option(
      names = "--backend",
      paramLabel = "A+B|NAME|auto",
      description =
          "A backend, a pair composed on the spot, or what selection takes (default"
              + " ${DEFAULT-VALUE}).")
  private String backend = "FLEX_CPU_ATTN";

  @Option(
      names = "--compare",
      paramLabel = "NAME,...",
      description = "Also run these on the same steps.")
  private java.util.List<String> compare = java.util.List.of();

  @Option(
      names = "--first",
      paramLabel = "ROW",
      description = "First row of the trace, from 0 (default ${DEFAULT-VALUE}).")
  private int first = FIRST;

  @Option(
      names = "--requests",
      paramLabel = "N",
      description = "Requests to serve (default ${DEFAULT-VALUE}).")
  private int requests = REQUESTS;

  @Option(
      names = "--layers",
      paramLabel = "N",
      description = "Layers of each layer group (default ${DEFAULT-VALUE}).")
  private int layers = 1;

  @Option(
      names = "--max-num-batched-tokens",
      paramLabel = "N",
      description = "Query tokens of a step (default ${DEFAULT-VALUE}).")
  private int maxBatchedTokens = MAX_BATCHED_TOKENS;

  @Option(
      names = "--max-num-seqs",
      paramLabel = "N",
      description = "Requests of a step (default ${DEFAULT-VALUE}).")
  private int maxSeqs = MAX_SEQS;

  @Option(
      names = "--image-count",
      paramLabel = "isqrt|raw",
      description = "How NumImages is read (default ${DEFAULT-VALUE}).")
  private ImageCount imageCount = ImageCount.isqrt;

  @Option(
      names = "--image-tokens",
      paramLabel = "N",
      description = "Tokens of an image; default: the model's.")
  private Optional<Integer> imageTokens = Optional.empty();

  @Option(
      names = "--mask",
      paramLabel = "MODE",
      description =
          "How images join masks that see them: override, clamp_past, clamp_both, none; default:"
              + " the model's.")
  private Optional<ImageMask> mask = Optional.empty();

  @Option(
      names = "--split",
      negatable = true,
      defaultValue = "true",
      fallbackValue = "true",
      description = "Divide mixed batches by request (default), or not.")
  private boolean split;

  @Option(
      names = "--lowering",
      negatable = true,
      defaultValue = "true",
      fallbackValue = "true",
      description = "Run images on the fast child where that is exact (default), or not.")
  private boolean lowering;

  @Option(
      names = "--calibration",
      paramLabel = "FILE",
      description =
          "Let times that bench --calibrate measured on this host choose between routes that are"
              + " right; not with a backend, --split or --lowering that is named.")
  private Optional<Path> calibration = Optional.empty();

  @Option(
      names = "--report",
      paramLabel = "DIR",
      arity = "0..1",
      fallbackValue = DEFAULT_FOLDER,
      description = "Write report.html and steps.jsonl (default folder " + DEFAULT_FOLDER + ").")
  private Optional<Path> report = Optional.empty();

  @Option(
      names = "--shadow",
      paramLabel = "NAME",
      description = "Run this backend on every batch, too, over the same cache, and compare.")
  private Optional<String> shadow = Optional.empty();

  @Option(
      names = "--capture",
      paramLabel = "STEP",
      description =
          "Write this step's layers as safetensors, for route --spec and attend --in, into the"
              + " report's folder.")
  private Optional<Integer> capture = Optional.empty();

  @Option(
      names = "--capture-tensors",
      negatable = true,
      defaultValue = "true",
      fallbackValue = "true",
      description = "With queries, keys and values (default), or without.")
  private boolean captureTensors;

  @Option(
      names = "--seed",
      paramLabel = "N",
      description = "Seed of tensors, image places and checks (default ${DEFAULT-VALUE}).")
  private long seed = SEED;

  @Mixin private final OutputOptions output = new OutputOptions();

  public ReplayCommand(Console console) {
    this.console = console;
  }

  @Override
  public Integer call() {
    Invocation invocation = invocation();
    requirePositive("--layers", layers);
    if (layers > MOST_LAYERS) {
      throw BifocalException.of(
          ErrorCode.INVALID_OPTION, "--layers", layers, "at most " + MOST_LAYERS);
    }
    requirePositive("--max-num-batched-tokens", maxBatchedTokens);
    requirePositive("--max-num-seqs", maxSeqs);
    requireSomethingCaptured();
    report.ifPresent(Report::prepare);
    capture.ifPresent(this::prepareCapture);
    ModelShape shape = shape();
    TraceFile window =
        trace.map(TraceFile::read).orElseGet(TraceFile::shipped).window(first, requests);
    Workload workload = workload(window, shape);
    Seq<LayerGroup> groups = shape.denseGroups(DType.BF16, KvCacheDtype.AUTO, layers);
    DeviceProfile host = RunDevice.profile(platform);
    Contenders contenders =
        new Contenders(BackendCatalog.present(), routing(), groups, host, BLOCK_SIZE);
    Selections selections = new Selections(selector(), host, ModelTraits.of(shape), groups);
    Seq<Contender> running = Vector.of(replayed(contenders, selections));
    Seq<Refused> refused = Vector.empty();
    for (String other : Vector.ofAll(compare).flatMap(names -> Vector.of(names.split(",", -1)))) {
      Validation<Seq<String>, Contender> compared = contenders.find(other);
      running = compared.isValid() ? running.append(compared.get()) : running;
      refused =
          compared.isValid()
              ? refused
              : refused.append(new Refused(other.toUpperCase(Locale.ROOT), compared.getError()));
    }
    Outcome outcome =
        new Replay(
                workload,
                groups,
                running,
                Math.min(maxBatchedTokens, workload.positions()),
                Math.min(maxSeqs, requests),
                seed,
                platform)
            .run(new Progress(console, requests));
    Seq<String> cautions = trace.isPresent() ? Vector.empty() : TraceFile.CAUTIONS;
    Summary summary =
        new Summaries(
                outcome,
                running.map(contender -> contender.backend().name()),
                refused,
                conditions())
            .of(
                window,
                workload,
                imageCount,
                cautions,
                shape.id(),
                groups,
                running.head().inspection().shadow(),
                seed);
    ReportData data =
        ReportData.of(invocation, summary, workload, groups, running, selections.all(), outcome);
    report.ifPresent(folder -> Report.write(folder, outcome, data));
    switch (output.format()) {
      case TEXT -> console.out().print(SummaryText.of(summary));
      case JSON -> console.out().println(JsonText.of(summary));
    }
    report.ifPresent(
        folder -> console.err().println("bifocal: the report is " + folder.resolve(Report.PAGE)));
    requireCaptured(outcome);
    return (summary.passed() ? ExitStatus.DONE : ExitStatus.FAILED).number();
  }

  /** The backend that counts, with its shadow and what is captured of it. */
  private Contender replayed(Contenders contenders, Selections selections) {
    io.vavr.control.Option<Path> folder = io.vavr.control.Option.ofOptional(report);
    Contender primary =
        calibration
            .map(table -> measured(contenders, selections, table))
            .orElseGet(() -> contenders.required(named(selections)));
    Contender shadowed =
        shadow.map(name -> contenders.shadowed(primary, name, folder)).orElse(primary);
    return shadowed.inspected(
        new Inspection(
            shadowed.inspection().shadow(),
            io.vavr.control.Option.ofOptional(capture)
                .map(
                    step ->
                        new StepCapture(
                            step, folder.getOrElse(Path.of(DEFAULT_FOLDER)), captureTensors))));
  }

  private String named(Selections selections) {
    return backend.equalsIgnoreCase(AUTOMATIC) ? selections.automatic() : backend;
  }

  /** The pair that nobody named, on routes that measured times choose. */
  private Contender measured(Contenders contenders, Selections selections, Path table) {
    requireNothingNamed();
    return contenders.measured(
        named(selections), routing(), CalibrationFile.validHere(table, platform, version()));
  }

  private void requireNothingNamed() {
    ParseResult given = spec.commandLine().getParseResult();
    boolean backendNamed =
        given.hasMatchedOption("--backend") && !backend.equalsIgnoreCase(AUTOMATIC);
    if (backendNamed || given.hasMatchedOption("--split") || given.hasMatchedOption("--lowering")) {
      throw MeasuredRoutes.refusedBeside(
          backendNamed ? "--backend " + backend : "--split or --lowering", "one of the two");
    }
  }

  private Seq<Condition> conditions() {
    Seq<Condition> conditions =
        RunConditions.of(platform).map(finding -> new Condition(finding.topic(), finding.seen()));
    return calibration
        .map(table -> conditions.append(new Condition("routing", "measured: " + table)))
        .orElse(conditions);
  }

  private String version() {
    return String.join(" ", spec.root().version());
  }

  private static Selector selector() {
    return BifocalInjector.create(PlatformModules.detect().present()).getInstance(Selector.class);
  }

  private void requireSomethingCaptured() {
    if (!captureTensors && capture.isEmpty()) {
      throw BifocalException.of(
              ErrorCode.INVALID_OPTION, "--no-capture-tensors", "no --capture", "a step to capture")
          .withRemedy("add --capture STEP, or leave it out");
    }
  }

  private void prepareCapture(int step) {
    if (step < 0) {
      throw BifocalException.of(ErrorCode.INVALID_OPTION, "--capture", step, "at least 0");
    }
    Report.prepare(report.orElse(Path.of(DEFAULT_FOLDER)));
  }

  private void requireCaptured(Outcome outcome) {
    if (capture.isPresent() && capture.get() >= outcome.steps()) {
      throw BifocalException.of(
          ErrorCode.INVALID_OPTION,
          "--capture",
          capture.get(),
          "0.." + (outcome.steps() - 1) + ", the steps of this replay");
    }
  }

  private Invocation invocation() {
    CommandLine program = spec.root().commandLine();
    return Invocation.of(
        program.getCommandName(), program.getParseResult().originalArgs(), version());
  }

  private Workload workload(TraceFile window, ModelShape shape) {
    int tokens = imageTokens.orElseGet(() -> shape.imageTokens().getOrElse(0));
    if (tokens < 0) {
      throw BifocalException.of(
          ErrorCode.INVALID_OPTION, "--image-tokens", tokens, "at least 0 (0 leaves images out)");
    }
    return Workload.of(window, imageCount, tokens, maxBatchedTokens, seed);
  }

  private MMPrefixAttentionRouting routing() {
    MMPrefixAttentionRouting whole =
        split ? new MMPrefixAttentionRouting() : new MMPrefixAttentionRouting().wholeBatch();
    return lowering ? whole.withLowering(Lowering.BOTH_WINDOWS) : whole;
  }

  private ModelShape shape() {
    ModelCatalog catalog = ModelCatalog.shipped();
    ModelShape found =
        catalog
            .find(model)
            .getOrElseThrow(
                () ->
                    BifocalException.of(
                            ErrorCode.INVALID_OPTION, "--model", "'" + model + "'", "a known id")
                        .withRemedy(
                            NearestName.adviceElseAll(
                                model, catalog.models().map(ModelShape::id).asJava())));
    return mask.map(found::withImageMask).orElse(found);
  }

  private static void requirePositive(String option, int value) {
    if (value < 1) {
      throw BifocalException.of(ErrorCode.INVALID_OPTION, option, value, "at least 1");
    }
  }
}
