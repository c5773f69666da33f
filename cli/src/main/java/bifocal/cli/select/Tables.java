package bifocal.cli.select;

import bifocal.cli.command.CliFailure;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.BackendRegistry;
import bifocal.core.backend.Composed;
import bifocal.core.backend.Execution;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.NearestName;
import bifocal.core.select.FeatureColumn;
import bifocal.core.select.FeatureRow;
import bifocal.core.select.FeatureTable;
import bifocal.core.select.FeatureTables;
import bifocal.core.select.PriorityList;
import bifocal.core.select.Selector;
import bifocal.core.select.Tabulated;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/** The tables that can be printed. */
final class Tables {
  private static final String PRIORITIES = "priorities";
  private static final String MODELS = "models";
  private static final String EXECUTION = "execution";
  private static final String LATENT_PREFILL = "mla_prefill";
  private static final String COMPOSITES = "composites";

  private Tables() {}

  /** The four tables of features, one below the other. */
  static Table features(Selector selector) {
    return features(selector, FeatureTable.values());
  }

  /** One table by its name. */
  static Table named(Selector selector, String name) {
    Seq<String> names =
        Vector.of(FeatureTable.values())
            .map(FeatureTable::label)
            .appendAll(Vector.of(LATENT_PREFILL, PRIORITIES, EXECUTION, MODELS));
    return switch (name) {
      case PRIORITIES -> priorities(selector);
      case EXECUTION -> execution(selector);
      case LATENT_PREFILL -> latentPrefill(selector);
      case MODELS -> new ModelMatrix(selector).table();
      default ->
          Vector.of(FeatureTable.values())
              .find(table -> table.label().equals(name))
              .map(table -> features(selector, table))
              .getOrElseThrow(
                  () ->
                      CliFailure.of(
                          ErrorCode.INVALID_OPTION,
                          "--table: unknown value '"
                              + name
                              + "'; "
                              + NearestName.adviceAndAll(name, names)));
    };
  }

  private static Table features(Selector selector, FeatureTable... tables) {
    BackendRegistry.Snapshot registry = selector.registry().snapshot();
    return new Table(
        Vector.of(FeatureColumn.values()).map(FeatureColumn::label),
        Vector.of(tables)
            .flatMap(table -> FeatureTables.rows(registry, table))
            .map(FeatureRow::cells));
  }

  private static Table priorities(Selector selector) {
    return new Table(
        Vector.of("attention", "devices", "condition", "priority", "backend"),
        selector.policies().flatMap(policy -> policy.priorityLists()).flatMap(Tables::ranked));
  }

  private static Seq<Seq<String>> ranked(PriorityList list) {
    return list.order()
        .zipWithIndex()
        .map(
            at ->
                Vector.of(
                    list.attention(),
                    list.devices(),
                    list.condition(),
                    String.valueOf(at._2() + 1),
                    at._1().value()));
  }

  private static Table latentPrefill(Selector selector) {
    return new Table(
        Vector.of("backend", "description", "dtypes", "compute_capability", "notes"),
        selector.policies().flatMap(policy -> policy.latentPrefillRows()));
  }

  private static Table execution(Selector selector) {
    return new Table(
        Vector.of("table", "backend", "version", "execution", "reason"),
        selector
            .registry()
            .snapshot()
            .backends()
            .sortBy(AttentionBackend::name)
            .flatMap(Tables::executionRows)
            .sortBy(row -> tableRank(row.get(0))));
  }

  private static Seq<Seq<String>> executionRows(AttentionBackend<?> backend) {
    Execution execution = backend.execution();
    if (backend instanceof Tabulated tabulated) {
      return tabulated
          .rows()
          .map(row -> executionRow(row, tabulated.execution(row).getOrElse(execution)));
    }
    return Vector.of(
        Vector.of(
            backend instanceof Composed ? COMPOSITES : "",
            backend.name().value(),
            "",
            execution.status().label(),
            backend instanceof Composed pair ? missing(pair, backend) : execution.reason()));
  }

  private static Seq<String> executionRow(FeatureRow row, Execution execution) {
    return Vector.of(
        row.table().label(),
        row.backend().value(),
        row.version(),
        execution.status().label(),
        execution.reason());
  }

  /** The reasons of the children that keep the pair from running by itself, their codes first. */
  private static String missing(Composed pair, AttentionBackend<?> composite) {
    Execution whole = composite.execution();
    if (whole.status() == Execution.Status.NATIVE) {
      return whole.reason();
    }
    return Vector.<AttentionBackend<?>>of(pair.childA(), pair.childB())
        .filter(child -> child.execution().status() == whole.status())
        .distinctBy(child -> child.execution().reason())
        .map(child -> child.execution().reason() + " (" + child.name() + ")")
        .mkString("; ");
  }

  private static int tableRank(String table) {
    Seq<String> order =
        Vector.of(FeatureTable.values()).map(FeatureTable::label).append(COMPOSITES).append("");
    return order.indexOf(table);
  }
}
