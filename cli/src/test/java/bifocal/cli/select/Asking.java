package bifocal.cli.select;

import bifocal.cli.command.Installed;
import bifocal.core.device.Platform;
import bifocal.core.select.Candidate;
import bifocal.core.select.SelectionRefusal;
import bifocal.core.select.SelectionReport;
import bifocal.core.select.SelectionRequest;
import bifocal.core.select.Selector;
import io.vavr.collection.Seq;
import io.vavr.control.Validation;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/** Asks the selector in the words of the command line. */
final class Asking {
  static final Selector SELECTOR = Backends.present();

  private Asking() {}

  @Command(name = "ask")
  private static final class Ask {}

  /** Skips a test of a platform whose module was left out. */
  static void requireInstalled(Platform... platforms) {
    Installed.require(platforms);
  }

  /** Skips a test that needs the rows of every platform. */
  static void requireAllInstalled() {
    requireInstalled(Platform.values());
  }

  static SelectionRequest request(String arguments) {
    SelectionOptions options = new SelectionOptions();
    options.addedTo(new CommandLine(new Ask())).parseArgs(arguments.strip().split("\\s+"));
    return options.request(SELECTOR);
  }

  static Validation<SelectionRefusal, SelectionReport> select(String arguments) {
    return SELECTOR.select(request(arguments));
  }

  static Seq<Candidate> candidates(Validation<SelectionRefusal, SelectionReport> outcome) {
    return outcome.isValid() ? outcome.get().candidates() : outcome.getError().candidates();
  }
}
