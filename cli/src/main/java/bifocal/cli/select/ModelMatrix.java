package bifocal.cli.select;

import bifocal.core.backend.InvalidReason;
import bifocal.core.error.BifocalException;
import bifocal.core.model.ModelCatalog;
import bifocal.core.model.ModelShape;
import bifocal.core.select.SelectionRefusal;
import bifocal.core.select.SelectionReport;
import bifocal.core.select.SelectionRequest;
import bifocal.core.select.Selector;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/**
 * What would be chosen for every kind of layer of every model of the catalogue, on some devices, by
 * the very options that a user would say.
 */
final class ModelMatrix {
  private static final Map<String, String> DEVICES =
      LinkedHashMap.of("SM 8.0", "--capability 8.0", "SM 9.0", "--capability 9.0")
          .put("SM 10.0", "--capability 10.0")
          .put("SM 12.0", "--capability 12.0")
          .put("gfx942", "--arch gfx942")
          .put("gfx950", "--arch gfx950")
          .put("CPU AVX-512", "--cpu-isa avx512f")
          .put("CPU AMX", "--cpu-isa amx");
  private static final String UNKNOWN = "shapes unknown";
  private static final String NOTHING = "none: ";

  private final Selector selector;

  ModelMatrix(Selector selector) {
    this.selector = selector;
  }

  /** A command of no name, to read options with. */
  @Command(name = "model")
  private static final class Model {}

  /** The matrix: a row for each kind of layer, a column for each device. */
  Table table() {
    return new Table(
        Vector.of("model", "layers").appendAll(DEVICES.keySet()).append("not confirmed"),
        ModelCatalog.shipped().models().flatMap(this::rows));
  }

  private Seq<Seq<String>> rows(ModelShape model) {
    if (model.latent().isDefined()) {
      return Vector.of(
          row(model, model.sparse().isDefined() ? "latent, chosen keys" : "latent", ""));
    }
    return model.kinds().isEmpty()
        ? Vector.of(row(model, "", ""))
        : model.kinds().map(kind -> row(model, label(model, kind), " --layer-kind " + kind.name()));
  }

  private static String label(ModelShape model, ModelShape.Kind kind) {
    return model.sparse().isDefined() ? kind.name() + ", chosen blocks" : kind.name();
  }

  private Seq<String> row(ModelShape model, String label, String layer) {
    boolean known = model.latent().isDefined() || model.kinds().nonEmpty();
    return DEVICES
        .values()
        .map(device -> known ? chosen(device + " --model " + model.id() + layer) : UNKNOWN)
        .toVector()
        .prepend(label)
        .prepend(model.id())
        .append(model.unconfirmed().mkString(", "));
  }

  private String chosen(String arguments) {
    SelectionOptions options = new SelectionOptions();
    options.addedTo(new CommandLine(new Model())).parseArgs(arguments.split(" "));
    SelectionRequest request = options.request(selector);
    try {
      Validation<SelectionRefusal, SelectionReport> outcome = selector.select(request);
      return outcome.isInvalid()
          ? NOTHING + refused(outcome.getError()).getOrElse(() -> notes(request))
          : served(outcome.get());
    } catch (BifocalException refusal) {
      return NOTHING + refusal.code();
    }
  }

  private static String served(SelectionReport report) {
    String version =
        report
            .versions()
            .headOption()
            .filter(only -> report.children().isEmpty())
            .map(only -> " " + only.version())
            .getOrElse("");
    String prefill = report.latentPrefill().map(name -> ", prefill " + name).getOrElse("");
    return report.backend() + version + prefill;
  }

  /** What speaks against the candidate that comes closest; absent when there is none. */
  private static Option<String> refused(SelectionRefusal refusal) {
    return refusal
        .candidates()
        .minBy(candidate -> candidate.reasons().size())
        .map(
            closest ->
                closest.reasons().map(InvalidReason::text).mkString(", ")
                    + " ("
                    + closest.backend()
                    + ")");
  }

  private String notes(SelectionRequest request) {
    return selector
        .policy(request.attention().device().platform())
        .plan(request)
        .notes()
        .mkString(" ");
  }
}
