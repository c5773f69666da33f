package bifocal.cli.attend;

import bifocal.cli.attend.AttendReport.Cache;
import bifocal.cli.attend.AttendReport.Check;
import bifocal.cli.attend.AttendReport.Milliseconds;
import bifocal.cli.backend.BackendCatalog;
import bifocal.cli.backend.CalibrationFile;
import bifocal.cli.backend.MeasuredRoutes;
import bifocal.cli.backend.RunConditions;
import bifocal.cli.backend.RunDevice;
import bifocal.cli.command.CliFailure;
import bifocal.cli.command.Console;
import bifocal.cli.command.ExitStatus;
import bifocal.cli.command.JsonText;
import bifocal.cli.command.NamesRequests;
import bifocal.cli.command.OutputOptions;
import bifocal.cli.command.PolicyName;
import bifocal.cli.route.RouteReport;
import bifocal.composite.CompositeBackend;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendValidator;
import bifocal.core.backend.BackendValidator.Accepted;
import bifocal.core.backend.BackendValidator.Scope;
import bifocal.core.backend.Deployment;
import bifocal.core.backend.Feature;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.KvContract;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.FileFailure;
import bifocal.core.layer.LayerGroup;
import bifocal.core.safetensors.Safetensors;
import bifocal.core.tensor.TensorView;
import bifocal.reference.Agreement;
import bifocal.reference.KeyValues;
import bifocal.reference.ReferenceAttention;
import bifocal.reference.Tolerance;
import bifocal.routing.Lowering;
import bifocal.routing.MMPrefixAttentionRouting;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
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

/** Runs attention over the tensors of a file. */
@Command(
    name = "attend",
    sortOptions = false,
    description = "Runs attention over a file's own queries, keys and values.",
    footer = {
      "",
      "The input is a safetensors file, the requests back to back:",
      "  q [T,Hq,Dk], k [S,Hkv,Dk], v [S,Hkv,Dv]   fp32, fp16 or bf16",
      "  query_lens [B], seq_lens [B]              int32, their sums T and S",
      "  images [N,3]                              int32: request, first, last",
      "  sinks [Hq], alibi_slopes [Hq]             fp32",
      "Texts in its __metadata__, each off or a default when left out: scale,",
      "causal, sliding_window, mask, softcap, kv_cache_dtype, k_scale, v_scale,",
      "block_size. The output holds out [T,Hq,Dv] and with --lse lse [T,Hq], fp32."
    })
public final class AttendCommand implements Callable<Integer>, NamesRequests {
  private final Console console;
  private final Supplier<BackendCatalog> catalog;

  @Spec private CommandSpec spec = CommandSpec.create();

  @Option(
      names = "--in",
      required = true,
      paramLabel = "FILE",
      description = "The case, a safetensors file.")
  private Path in = Path.of("");

  @Option(
      names = "--out",
      required = true,
      paramLabel = "FILE",
      description = "The safetensors file to write.")
  private Path out = Path.of("");

  @Option(
      names = "--backend",
      paramLabel = "NAME|A+B",
      description =
          "A backend, or a pair composed on the spot, as in (A+B)+C (default ${DEFAULT-VALUE}).")
  private String backend = "FLEX_CPU_ATTN";

  @Option(
      names = "--policy",
      paramLabel = "NAME",
      description = "What routes between the two of a pair (default ${DEFAULT-VALUE}).")
  private String policy = PolicyName.MM_PREFIX.label();

  @Option(
      names = "--platform",
      paramLabel = "NAME",
      description = "Where to run, cpu or cuda (default cpu).")
  private Platform platform = Platform.CPU;

  @Option(
      names = "--split",
      negatable = true,
      defaultValue = "true",
      fallbackValue = "true",
      description = "Divide a mixed batch by request (default), or not.")
  private boolean split;

  @Option(
      names = "--lowering",
      negatable = true,
      defaultValue = "false",
      fallbackValue = "true",
      description = "Run images on the fast child where that is exact, or not (default).")
  private boolean lowering;

  @Option(
      names = "--calibration",
      paramLabel = "FILE",
      description =
          "Let times that bench --calibrate measured on this host choose between the routes of a"
              + " pair that are right; not with a --policy, --split or --lowering that is named.")
  private Optional<Path> calibration = Optional.empty();

  @Option(
      names = "--check",
      description = "Compare every query token and head with the reference; fail past the bound.")
  private boolean check;

  @Option(names = "--lse", description = "Write the natural log-sum-exp, too.")
  private boolean lse;

  @Mixin private OutputOptions output = new OutputOptions();

  /** The command over some streams, with the backends of the class path. */
  public AttendCommand(Console console) {
    this(console, BackendCatalog::present);
  }

  /** The command with other backends. */
  AttendCommand(Console console, Supplier<BackendCatalog> catalog) {
    this.console = console;
    this.catalog = catalog;
  }

  @Override
  public Integer call() {
    at("--out", () -> Safetensors.requireWritable(out));
    requireAnother(in, out);
    try (Arena arena = Arena.ofShared()) {
      AttendCase given = given(arena);
      Accepted accepted = accepted(given);
      AttendReport report = report(given, accepted, arena);
      switch (output.format()) {
        case TEXT -> console.out().print(report.text());
        case JSON -> console.out().println(JsonText.of(report));
      }
      return (report.check().forAll(Check::passed) ? ExitStatus.DONE : ExitStatus.FAILED).number();
    } catch (OutOfMemoryError e) {
      throw CliFailure.of(
              ErrorCode.MEMORY_TOO_SMALL,
              "the case needs more memory than this JVM may take: "
                  + e.getMessage()
                  + "; raise it with BIFOCAL_JAVA_OPTIONS=-XX:MaxDirectMemorySize=..., or cut the"
                  + " case into parts")
          .causedBy(e);
    }
  }

  private AttendCase given(Arena arena) {
    try {
      return AttendCase.of(Safetensors.read(in, arena));
    } catch (BifocalException e) {
      throw e.in("--in");
    }
  }

  private static void at(String option, Runnable work) {
    try {
      work.run();
    } catch (BifocalException e) {
      throw e.in(option);
    }
  }

  private static void requireAnother(Path in, Path out) {
    try {
      if (Files.exists(out) && Files.exists(in) && Files.isSameFile(in, out)) {
        throw CliFailure.of(
            ErrorCode.INVALID_OPTION, "--out: '" + out + "' is the case itself; name another file");
      }
    } catch (IOException e) {
      throw FileFailure.writing("--out", out, e);
    }
  }

  private AttendReport report(AttendCase given, Accepted accepted, Arena arena) {
    KvCacheSpec spec = contract(given, accepted.backend());
    boolean returnsLse = accepted.features().has(Feature.LSE);
    AttendRun run = run(given, accepted.backend(), spec, returnsLse && (lse || check), arena);
    at("--out", () -> new Safetensors(LinkedHashMap.empty(), results(run)).write(out));
    return new AttendReport(
        accepted.backend().name().value(),
        platform.label(),
        RunConditions.of(platform)
            .map(finding -> new AttendReport.Condition(finding.topic(), finding.seen()))
            .appendAll(routedBy()),
        run.route().map(route -> RouteReport.of(route, run.batch())),
        Cache.of(spec),
        Milliseconds.of(run.times()),
        io.vavr.control.Option.when(check, () -> check(given, spec, run, arena)),
        out.toString());
  }

  private AttendRun run(
      AttendCase given, AttentionBackend<?> found, KvCacheSpec spec, boolean withLse, Arena arena) {
    try (RunDevice device = RunDevice.open(platform, AttentionObserver.NONE, arena)) {
      return AttendRun.of(given, found, spec, withLse, device, arena);
    }
  }

  private Map<String, TensorView> results(AttendRun run) {
    Map<String, TensorView> results = LinkedHashMap.of("out", run.output().out());
    return lse ? results.put("lse", run.output().lse().get()) : results;
  }

  private static Check check(AttendCase given, KvCacheSpec spec, AttendRun run, Arena arena) {
    KeyValues stored =
        KeyValues.stored(
            KeyValues.dense(given.k(), given.v(), run.batch()),
            given.layer().dtype(),
            spec,
            arena.allocate(spec.blockBytes(), Long.BYTES));
    Agreement agreement =
        Agreement.of(
            ReferenceAttention.of(given.layer(), given.parameters())
                .all(given.q(), stored, run.batch()),
            run.output());
    return Check.of(agreement, Tolerance.of(given.layer().dtype()), run.output().lse().isDefined());
  }

  private Seq<AttendReport.Condition> routedBy() {
    return calibration
        .map(table -> Vector.of(new AttendReport.Condition("routing", "measured: " + table)))
        .orElse(Vector.empty());
  }

  /** The backend, its routes those that the options or measured times choose. */
  private AttentionBackend<?> found(AttendCase given) {
    BackendCatalog backends = catalog.get();
    if (calibration.isEmpty()) {
      Lowering lowered = lowering ? Lowering.BOTH_WINDOWS : Lowering.OFF;
      return backends.find(backend, PolicyName.of(policy).policy(split, lowered));
    }
    requireNothingNamed();
    MMPrefixAttentionRouting routing =
        new MMPrefixAttentionRouting().withLowering(Lowering.BOTH_WINDOWS);
    return backends.find(
        backend,
        MeasuredRoutes.of(
            backends.find(backend, routing),
            backend,
            routing,
            CalibrationFile.validHere(
                calibration.get(), platform, String.join(" ", spec.root().version())),
            Vector.of(LayerGroup.of("of the case", given.layer()))));
  }

  /** A pair may be named: which of its children runs what is left to the times. */
  private void requireNothingNamed() {
    ParseResult options = spec.commandLine().getParseResult();
    for (String option : Vector.of("--policy", "--split", "--lowering")) {
      if (options.hasMatchedOption(option)) {
        throw MeasuredRoutes.refusedBeside(option, "one of the two");
      }
    }
  }

  /** The backend, if it can do all that the case asks. */
  private Accepted accepted(AttendCase given) {
    PolicyName named = PolicyName.of(policy);
    AttentionBackend<?> found = found(given);
    if (named != PolicyName.MM_PREFIX && !(found instanceof CompositeBackend<?, ?>)) {
      throw CliFailure.of(
          ErrorCode.INVALID_OPTION,
          "--policy " + policy + ": " + found.name() + " is no pair, so nothing is routed");
    }
    Accepted accepted =
        new BackendValidator(Scope.EXECUTION)
            .validate(found, request(given))
            .fold(
                reasons -> {
                  throw refused(found, reasons);
                },
                valid -> valid);
    if (lse && !accepted.features().has(Feature.LSE)) {
      throw CliFailure.of(
          ErrorCode.UNSUPPORTED, "--lse: " + found.name() + " returns no natural log-sum-exp");
    }
    return accepted;
  }

  private KvCacheSpec contract(AttendCase given, AttentionBackend<?> found) {
    AttentionRequest request = request(given);
    return KvContract.resolve(
            KvContract.Party.writer(found, request),
            Vector.of(KvContract.Party.reader(found, request)),
            given.layer(),
            given.scales(),
            given.blockSize())
        .fold(
            reasons -> {
              throw refused(found, reasons);
            },
            spec -> spec);
  }

  private AttentionRequest request(AttendCase given) {
    return new AttentionRequest(
        given.layer(), RunDevice.profile(platform), given.blockSize(), Deployment.PLAIN);
  }

  private static CliFailure refused(AttentionBackend<?> found, Seq<InvalidReason> reasons) {
    String texts =
        reasons
            .map(r -> "'" + r.text() + " (" + r.seen() + "; can do: " + r.wanted() + ")'")
            .mkString("[", ", ", "]");
    return CliFailure.of(
        ErrorCode.INVALID_SELECTION,
        "Selected backend "
            + found.name()
            + " is not valid for this configuration. Reason: "
            + texts);
  }
}
