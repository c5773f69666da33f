package bifocal.core.select;

import bifocal.core.backend.BackendName;
import bifocal.core.backend.FeatureSet;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * One row of the reference's feature tables.
 *
 * @param table which of them
 * @param version name of the variant, empty for a backend of one
 * @param features what the row says
 * @param spellings cells that the reference writes in another way than {@code features} reads
 */
public record FeatureRow(
    FeatureTable table,
    BackendName backend,
    String version,
    FeatureSet features,
    Map<FeatureColumn, String> spellings) {

  /** A row that reads as its features do. */
  public static FeatureRow of(
      FeatureTable table, BackendName backend, String version, FeatureSet features) {
    return new FeatureRow(table, backend, version, features, LinkedHashMap.empty());
  }

  /** The same row with one cell as the reference writes it. */
  public FeatureRow spelled(FeatureColumn column, String text) {
    return new FeatureRow(table, backend, version, features, spellings.put(column, text));
  }

  /** The cell of a column. */
  public String cell(FeatureColumn column) {
    return column.cell(this);
  }

  /** All cells, in the order of the columns. */
  public Seq<String> cells() {
    return Vector.of(FeatureColumn.values()).map(this::cell);
  }
}
