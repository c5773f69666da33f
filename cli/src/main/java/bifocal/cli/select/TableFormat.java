package bifocal.cli.select;

import bifocal.cli.command.JsonText;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Seq;
import java.util.Locale;

/** How a table is written. */
enum TableFormat {
  /** Cells with tabs between them, the header first. */
  TSV {
    @Override
    String write(Table table) {
      return lines(table.rows().prepend(table.columns()).map(row -> row.mkString("\t")));
    }
  },
  /** A table of Markdown. */
  MD {
    @Override
    String write(Table table) {
      return lines(
          table
              .rows()
              .prepend(table.columns().map(column -> "---"))
              .prepend(table.columns())
              .map(row -> row.map(TableFormat::escaped).mkString("| ", " | ", " |")));
    }
  },
  /** An array of objects. */
  JSON {
    @Override
    String write(Table table) {
      return JsonText.of(
              table.rows().map(row -> LinkedHashMap.ofEntries(table.columns().zip(row))).toVector())
          + "\n";
    }
  };

  /** The table as text. */
  abstract String write(Table table);

  String label() {
    return name().toLowerCase(Locale.ROOT);
  }

  private static String lines(Seq<String> lines) {
    return lines.mkString("", "\n", "\n");
  }

  private static String escaped(String cell) {
    return cell.replace("|", "\\|");
  }
}
