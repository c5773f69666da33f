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

  private static final String DEEPSEEK_V4 = "deepseek-v4";
  private static final String DEEPSEEK_V41 = "deepseek-v4.1";
  private static final String MINIMAX_M3 = "minimax-m3";

  /** Whether the model's own layers choose among the backends of DeepSeek V4. */
  public boolean deepSeekV4() {
    return id.startsWith(DEEPSEEK_V4) && !deepSeekV41();
  }

  /** Whether the model's own layers choose among the backends of DeepSeek V4.1. */
  public boolean deepSeekV41() {
    return id.startsWith(DEEPSEEK_V41);
  }

  /** Whether the model wires its sparse layers to the backend of MiniMax M3. */
  public boolean miniMaxM3() {
    return id.startsWith(MINIMAX_M3);
  }

  /** The traits of a model of the catalogue. */
  public static ModelTraits of(ModelShape model) {
    return new ModelTraits(
        model.id(),
        model.family(),
        TreeSet.ofAll(model.kinds().map(ModelShape.Kind::headSize)),
        model.kinds().exists(kind -> kind.softcap().isDefined()));
  }
}
