package bifocal.cli.select;

import bifocal.cli.backend.BackendExpression;
import bifocal.cli.command.CliFailure;
import bifocal.cli.command.Console;
import bifocal.cli.command.ExitStatus;
import bifocal.cli.command.JsonText;
import bifocal.cli.command.OutputOptions;
import bifocal.cli.command.PolicyName;
import bifocal.composite.CompositeBackends;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.BackendRegistry;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.RoutingPolicy;
import bifocal.core.select.SelectionRefusal;
import bifocal.core.select.SelectionReport;
import bifocal.core.select.SelectionRequest;
import bifocal.core.select.Selector;
import bifocal.routing.Lowering;
import io.vavr.collection.Seq;
import io.vavr.control.Validation;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Composes two backends, and says what the pair can do or why it cannot be. */
@Command(
    name = "compose",
    description = "Composes two backends: what the pair can do, or every reason why it cannot be.",
    sortOptions = false,
    abbreviateSynopsis = true)
public final class ComposeCommand implements Callable<Integer> {
  private static final String GROUP = "layer";

  private final Console console;
  private final SelectionOptions options;

  @Parameters(
      index = "0",
      paramLabel = "A",
      description = "The general child, which writes the cache; a pair A+B or (A+B)+C, too.")
  private String childA = "";

  @Parameters(index = "1", paramLabel = "B", description = "The fast child; a pair, too.")
  private String childB = "";

  @Option(
      names = "--policy",
      paramLabel = "NAME",
      description = "What routes: mm-prefix (default), prefill-decode, child-a or child-b.")
  private String policy = PolicyName.MM_PREFIX.label();

  @Option(names = "--no-split", description = "Every batch goes to one child as a whole.")
  private boolean whole;

  @Option(names = "--lowering", description = "Images may be cut into runs for child B.")
  private boolean lowering;

  @Mixin private OutputOptions output = new OutputOptions();

  @Spec private CommandSpec spec = CommandSpec.create();

  private ComposeCommand(Console console, SelectionOptions options) {
    this.console = console;
    this.options = options;
  }

  /** The command over some streams. */
  public static CommandLine over(Console console) {
    SelectionOptions options = new SelectionOptions();
    return options.addedTo(new CommandLine(new ComposeCommand(console, options)));
  }

  @Override
  public Integer call() {
    Selector selector = Backends.present(console);
    if (options.configuration().namesBackends()) {
      throw CliFailure.of(
          ErrorCode.INVALID_OPTION, "compose takes its two backends by name, and no others beside");
    }
    RoutingPolicy routing =
        PolicyName.of(policy).policy(!whole, lowering ? Lowering.LEFT_WINDOW : Lowering.OFF);
    Composition composition = composed(selector, routing);
    switch (output.format()) {
      case TEXT -> console.out().print(composition.text());
      case JSON -> console.out().println(JsonText.of(composition));
    }
    return ExitStatus.DONE.number();
  }

  private Composition composed(Selector selector, RoutingPolicy routing) {
    BackendRegistry.Snapshot registry = selector.registry().snapshot();
    AttentionBackend<?> a = BackendExpression.of(childA).backend(registry::require, routing);
    AttentionBackend<?> b = BackendExpression.of(childB).backend(registry::require, routing);
    AttentionBackend<?> pair = pair(a, b, routing);
    if (!options.anyGiven(spec)) {
      return Composition.of(
          pair,
          routing,
          pair.capabilities().all(),
          pair.graphSupport(LayerGroup.of(GROUP, options.layer().spec())));
    }
    SelectionRequest request = options.request(selector);
    Validation<SelectionRefusal, SelectionReport> served = selector.check(pair, request);
    if (served.isInvalid()) {
      throw SelectCommand.refused(served.getError());
    }
    return Composition.of(pair, routing, request.asked(), served.get());
  }

  private static <MA extends AttentionMetadata, MB extends AttentionMetadata>
      AttentionBackend<?> pair(
          AttentionBackend<MA> a, AttentionBackend<MB> b, RoutingPolicy routing) {
    Validation<Seq<InvalidReason>, ? extends AttentionBackend<?>> made =
        CompositeBackends.createCompositeBackend(a, b, routing);
    if (made.isInvalid()) {
      throw refused(a, b, made.getError());
    }
    return made.get();
  }

  /** One reason as JSON gives it. */
  private record Reason(ReasonCode code, String text, String seen, String wanted) {
    static Reason of(InvalidReason reason) {
      return new Reason(reason.code(), reason.text(), reason.seen(), reason.wanted());
    }
  }

  private static CliFailure refused(
      AttentionBackend<?> a, AttentionBackend<?> b, Seq<InvalidReason> reasons) {
    return CliFailure.of(
            ErrorCode.INVALID_COMPOSITION,
            a.name()
                + " and "
                + b.name()
                + " cannot be composed: "
                + reasons.map(r -> r.text() + " (" + r.seen() + ")").mkString("; "))
        .with("reasons", reasons.map(Reason::of));
  }
}
