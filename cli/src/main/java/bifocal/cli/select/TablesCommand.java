package bifocal.cli.select;

import bifocal.cli.command.Console;
import bifocal.cli.command.ExitStatus;
import bifocal.core.select.Selector;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Prints the reference's tables, and others, from what is registered. */
@Command(name = "tables", description = "Prints what every backend supports, from the registry.")
public final class TablesCommand implements Callable<Integer> {
  private final Console console;

  @Option(
      names = "--format",
      paramLabel = "tsv|md|json",
      description = "How to write the tables: tsv (default), md or json.")
  private String format = TableFormat.TSV.label();

  @Option(
      names = "--table",
      paramLabel = "NAME",
      description =
          "standard, mla, minimax_m3, deepseek_v4, mla_prefill, priorities, execution or"
              + " models; without it, the four tables of features.")
  private @Nullable String table;

  /** The command over some streams. */
  public TablesCommand(Console console) {
    this.console = console;
  }

  @Override
  public Integer call() {
    TableFormat wanted = Choice.of("--format", format, TableFormat.values(), TableFormat::label);
    Selector selector = Backends.present();
    Table printed = table == null ? Tables.features(selector) : Tables.named(selector, table);
    console.out().print(wanted.write(printed));
    return ExitStatus.DONE.number();
  }
}
