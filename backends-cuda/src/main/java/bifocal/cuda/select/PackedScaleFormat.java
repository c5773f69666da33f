package bifocal.cuda.select;

import bifocal.core.select.ModelTraits;
import io.vavr.control.Option;
import java.util.Locale;

/** How {@code FLASHINFER_MLA_SPARSE_SM120} reads the scales in packed records. */
public enum PackedScaleFormat {
  /** Any number. */
  ARBITRARY_FP32,
  /** Powers of two. */
  POW2_FP32;

  private static final String ARBITRARY_MODELS = "glm";

  /**
   * The format of a model's records.
   *
   * @param modelType the model's type as its configuration says it, for instance {@code
   *     deepseek_v32}
   */
  public static PackedScaleFormat ofModelType(String modelType) {
    return modelType.startsWith(ARBITRARY_MODELS) ? ARBITRARY_FP32 : POW2_FP32;
  }

  /** What is worth knowing of a model's records; nothing where the model is not named. */
  static Option<String> remark(ModelTraits model) {
    return Option.when(
        !model.id().isEmpty(),
        () -> "scales of packed records are read as " + ofModelType(model.id()).label());
  }

  /** Name as the library writes it. */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }
}
