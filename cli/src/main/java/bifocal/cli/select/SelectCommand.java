package bifocal.cli.select;

import bifocal.cli.command.CliFailure;
import bifocal.cli.command.Console;
import bifocal.cli.command.ExitStatus;
import bifocal.cli.command.JsonText;
import bifocal.cli.command.OutputOptions;
import bifocal.core.select.SelectionJson;
import bifocal.core.select.SelectionRefusal;
import bifocal.core.select.SelectionReport;
import bifocal.core.select.Selector;
import io.vavr.control.Validation;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** Chooses a backend, and says so. */
@Command(
    name = "select",
    description = "Chooses a backend for a layer and says what decided.",
    sortOptions = false,
    abbreviateSynopsis = true)
public final class SelectCommand implements Callable<Integer> {
  private final Console console;
  private final SelectionOptions options;

  @Mixin private OutputOptions output = new OutputOptions();

  private SelectCommand(Console console, SelectionOptions options) {
    this.console = console;
    this.options = options;
  }

  /** The command over some streams. */
  public static CommandLine over(Console console) {
    SelectionOptions options = new SelectionOptions();
    return options.addedTo(new CommandLine(new SelectCommand(console, options)));
  }

  @Override
  public Integer call() {
    Selector selector = Backends.present(console);
    Validation<SelectionRefusal, SelectionReport> outcome =
        selector.select(options.request(selector));
    if (outcome.isInvalid()) {
      throw refused(outcome.getError());
    }
    options.requireShareable(outcome.get());
    switch (output.format()) {
      case TEXT -> console.out().print(SelectionText.brief(outcome.get()));
      case JSON -> console.out().println(JsonText.of(SelectionJson.of(outcome.get())));
    }
    return ExitStatus.DONE.number();
  }

  static CliFailure refused(SelectionRefusal refusal) {
    return CliFailure.of(refusal.code(), refusal.message())
        .with("candidates", SelectionJson.candidates(refusal.candidates()));
  }
}
