package bifocal.core.select;

import bifocal.core.model.ModelShape;
import io.vavr.collection.Set;
import io.vavr.collection.TreeSet;

/**
 * What policies read of a whole model.
 *
 * @param id how users name it, empty when unknown
 * @param family how its makers name it, empty when unknown
 * @param headSizes head sizes of all its layers; empty when unknown
 * @param softcapped whether some layer caps its logits
 */
public record ModelTraits(String id, String family, Set<Integer> headSizes, boolean softcapped) {
  /** Nothing is known but the layer itself. */
  public static final ModelTraits UNKNOWN = new ModelTraits("", "", TreeSet.empty(), false);

  /** The traits of a model of the catalogue. */
  public static ModelTraits of(ModelShape model) {
    return new ModelTraits(
        model.id(),
        model.family(),
        TreeSet.ofAll(model.kinds().map(ModelShape.Kind::headSize)),
        model.kinds().exists(kind -> kind.softcap().isDefined()));
  }
}
