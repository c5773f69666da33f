package bifocal.core.select;

import bifocal.core.backend.Execution;
import io.vavr.collection.Seq;
import io.vavr.control.Option;

/** A backend that has rows in the reference's feature tables. */
public interface Tabulated {
  /** Its rows, one for each variant, in the reference's order. */
  Seq<FeatureRow> rows();

  /** Whether this build has kernels of one row; absent where that is so for the whole backend. */
  default Option<Execution> execution(FeatureRow row) {
    return Option.none();
  }
}
