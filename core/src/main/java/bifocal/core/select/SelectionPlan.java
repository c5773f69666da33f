package bifocal.core.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * How a platform would choose.
 *
 * @param asked what candidates are asked, after the model's policies
 * @param order candidates, first choice first
 * @param source {@code MODEL} where the model and not the platform's list names the candidates
 * @param notes what the model's policies changed
 * @param settled whether the model decides even where the user names a backend
 */
public record SelectionPlan(
    AttentionRequest asked,
    Seq<BackendName> order,
    Source source,
    Seq<String> notes,
    boolean settled) {

  /** A plan that leaves a backend that the user names as it is. */
  public SelectionPlan(
      AttentionRequest asked, Seq<BackendName> order, Source source, Seq<String> notes) {
    this(asked, order, source, notes, false);
  }

  /** A platform's list, with nothing changed. */
  public static SelectionPlan byPriority(AttentionRequest asked, Seq<BackendName> order) {
    return new SelectionPlan(asked, order, Source.PRIORITY, Vector.empty());
  }

  /** Candidates that a model names. */
  public static SelectionPlan byModel(
      AttentionRequest asked, Seq<BackendName> order, String because) {
    return new SelectionPlan(asked, order, Source.MODEL, Vector.of(because));
  }

  /** The same plan, whatever backend the user names. */
  public SelectionPlan whateverIsNamed() {
    return new SelectionPlan(asked, order, source, notes, true);
  }

  /** The same plan with a remark. */
  public SelectionPlan noting(String remark) {
    return new SelectionPlan(asked, order, source, notes.append(remark), settled);
  }
}
