package bifocal.core.select;

import io.vavr.collection.Seq;

/** A backend that has rows in the reference's feature tables. */
public interface Tabulated {
  /** Its rows, one for each variant, in the reference's order. */
  Seq<FeatureRow> rows();
}
