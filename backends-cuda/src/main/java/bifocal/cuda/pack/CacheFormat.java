package bifocal.cuda.pack;

import bifocal.core.cache.KvCacheDtype;
import bifocal.core.tensor.DType;
import io.vavr.control.Option;

/**
 * How a kernel reads or writes the numbers of a cache.
 *
 * @param numbers their type
 * @param tokenScales whether each token and head has a scale of its own; else one scale serves a
 *     tensor or a head
 */
public record CacheFormat(Numbers numbers, boolean tokenScales) {
  /** Numbers of the model's own type. */
  public static final CacheFormat SAME = new CacheFormat(Numbers.SAME, false);

  /** Types of cached numbers, under the names that manifests use. */
  public enum Numbers {
    SAME("same"),
    E4M3("e4m3"),
    E5M2("e5m2"),
    INT8("int8");

    private final String label;

    Numbers(String label) {
      this.label = label;
    }

    /** As a manifest spells it. */
    public String label() {
      return label;
    }
  }

  /**
   * The format of a cache for a model's type; absent when no kernel is compiled for the two.
   *
   * @param cache a resolved type
   * @param model type of queries, keys and values
   */
  public static Option<CacheFormat> of(KvCacheDtype cache, DType model) {
    return switch (cache) {
      case FLOAT32 -> same(model == DType.FP32);
      case FLOAT16 -> same(model == DType.FP16);
      case BFLOAT16 -> same(model == DType.BF16);
      case FP8, FP8_E4M3 -> Option.some(new CacheFormat(Numbers.E4M3, false));
      case FP8_E5M2 -> Option.some(new CacheFormat(Numbers.E5M2, false));
      case FP8_PER_TOKEN_HEAD -> Option.some(new CacheFormat(Numbers.E4M3, true));
      case INT8_PER_TOKEN_HEAD -> Option.some(new CacheFormat(Numbers.INT8, true));
      case AUTO,
          FP8_INC,
          FP8_DS_MLA,
          NVFP4_DS_MLA,
          TURBOQUANT_K8V4,
          TURBOQUANT_4BIT_NC,
          TURBOQUANT_K3V4_NC,
          TURBOQUANT_3BIT_NC,
          INT4_PER_TOKEN_HEAD,
          NVFP4,
          NVFP4_4OVER6 ->
          Option.none();
    };
  }

  private static Option<CacheFormat> same(boolean matches) {
    return Option.when(matches, SAME);
  }

  /** Whether cached numbers are narrower than the model's. */
  public boolean quantised() {
    return numbers != Numbers.SAME;
  }

  @Override
  public String toString() {
    return numbers.label() + (tokenScales ? "-token" : "");
  }
}
