package bifocal.cli.select;

import bifocal.cli.command.CliFailure;
import bifocal.core.backend.FeatureSet;
import bifocal.core.error.ErrorCode;
import bifocal.core.select.AttentionConfig;
import bifocal.core.select.Role;
import bifocal.core.select.SelectionReport;
import bifocal.core.select.SelectionRequest;
import bifocal.core.select.Selector;
import io.vavr.collection.LinkedHashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.collection.Vector;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;

/** All options of a selection. */
final class SelectionOptions {
  private final DeviceOptions device = new DeviceOptions();
  private final LayerOptions layer = new LayerOptions();
  private final ConfigurationOptions configuration = new ConfigurationOptions();
  private final Strictness strictness = new Strictness();
  private Set<String> names = LinkedHashSet.empty();

  /** How much counts as support. */
  static final class Strictness {
    @Option(
        names = "--strict-reference",
        description = "Count as support only what the reference says.")
    private boolean strict;
  }

  /** Adds the options to a command. */
  CommandLine addedTo(CommandLine command) {
    Set<String> others = LinkedHashSet.ofAll(command.getCommandSpec().optionsMap().keySet());
    command.addMixin("device", device);
    command.addMixin("layer", layer);
    command.addMixin("strictness", strictness);
    configuration.addTo(command.getCommandSpec());
    names = LinkedHashSet.ofAll(command.getCommandSpec().optionsMap().keySet()).removeAll(others);
    return command;
  }

  /** Whether the command line of a command that has these options holds one of them. */
  boolean anyGiven(CommandSpec command) {
    return names.exists(command.commandLine().getParseResult()::hasMatchedOption);
  }

  /** The options of the layer. */
  LayerOptions layer() {
    return layer;
  }

  /** The configuration. */
  AttentionConfig configuration() {
    return configuration.config();
  }

  /** Requires that ranks which share a sequence can do so on the chosen backend. */
  void requireShareable(SelectionReport chosen) {
    Seq<String> objections = objectionsToSharing(chosen);
    if (objections.nonEmpty()) {
      throw CliFailure.of(ErrorCode.INVALID_OPTION, objections.mkString("; "));
    }
  }

  /** Why ranks cannot share a sequence on the chosen backend as they were told to. */
  Seq<String> objectionsToSharing(SelectionReport chosen) {
    FeatureSet features = chosen.chosen().capabilities().all();
    return chosen
        .blockSize()
        .map(size -> layer.sharing().objections(chosen.backend(), features, size, 0))
        .getOrElse(Vector.empty())
        .appendAll(layer.prefillSharing().objection(chosen.backend(), features));
  }

  /** What is asked for. */
  SelectionRequest request(Selector selector) {
    return new SelectionRequest(
        layer.request(device.device(selector)),
        configuration.config(),
        layer.traits(),
        Role.TARGET,
        strictness.strict);
  }
}
