package bifocal.core.select;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.BackendRegistry;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/** The reference's feature tables, printed from what is registered. */
public final class FeatureTables {
  private FeatureTables() {}

  /** Rows of one table, backends in the order of their names and variants in their own. */
  public static Seq<FeatureRow> rows(BackendRegistry.Snapshot registry, FeatureTable table) {
    return registry
        .backends()
        .sortBy(AttentionBackend::name)
        .flatMap(FeatureTables::rows)
        .filter(row -> row.table() == table);
  }

  private static Seq<FeatureRow> rows(AttentionBackend<?> backend) {
    return backend instanceof Tabulated tabulated ? tabulated.rows() : Vector.empty();
  }
}
