package bifocal.cli.select;

import bifocal.cli.command.Console;
import bifocal.cli.command.ExitStatus;
import bifocal.core.select.SelectionRefusal;
import bifocal.core.select.SelectionReport;
import bifocal.core.select.SelectionRequest;
import bifocal.core.select.Selector;
import io.vavr.control.Validation;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/** Chooses a backend, and explains the choice to a person. */
@Command(
    name = "explain",
    description = "Chooses a backend and explains: every candidate, what decided, what to change.",
    sortOptions = false,
    abbreviateSynopsis = true)
public final class ExplainCommand implements Callable<Integer> {
  private final Console console;
  private final SelectionOptions options;

  private ExplainCommand(Console console, SelectionOptions options) {
    this.console = console;
    this.options = options;
  }

  /** The command over some streams. */
  public static CommandLine over(Console console) {
    SelectionOptions options = new SelectionOptions();
    return options.addedTo(new CommandLine(new ExplainCommand(console, options)));
  }

  @Override
  public Integer call() {
    Selector selector = Backends.present(console);
    SelectionRequest request = options.request(selector);
    Validation<SelectionRefusal, SelectionReport> outcome = selector.select(request);
    if (outcome.isInvalid()) {
      console.out().print(Explanation.of(request, outcome.getError()));
      throw SelectCommand.refused(outcome.getError());
    }
    console
        .out()
        .print(Explanation.of(request, outcome.get(), options.objectionsToSharing(outcome.get())));
    options.requireShareable(outcome.get());
    return ExitStatus.DONE.number();
  }
}
