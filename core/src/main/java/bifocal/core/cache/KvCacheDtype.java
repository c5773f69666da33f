package bifocal.core.cache;

import bifocal.core.tensor.DType;
import io.vavr.control.Option;
import java.util.Locale;

/** Types a KV cache can be asked to have; {@link #AUTO} means the model's own. */
public enum KvCacheDtype {
  AUTO,
  FLOAT32,
  FLOAT16,
  BFLOAT16,
  FP8,
  FP8_E4M3,
  FP8_E5M2,
  FP8_INC,
  FP8_DS_MLA,
  NVFP4_DS_MLA,
  TURBOQUANT_K8V4,
  TURBOQUANT_4BIT_NC,
  TURBOQUANT_K3V4_NC,
  TURBOQUANT_3BIT_NC,
  INT4_PER_TOKEN_HEAD,
  INT8_PER_TOKEN_HEAD,
  FP8_PER_TOKEN_HEAD,
  NVFP4,
  NVFP4_4OVER6;

  private final String label = name().toLowerCase(Locale.ROOT);

  /** Name as users write it, for instance {@code fp8_e4m3}. */
  public String label() {
    return label;
  }

  /** This type, with {@link #AUTO} replaced by the model's and {@link #FP8} by its e4m3 form. */
  public KvCacheDtype resolve(DType model) {
    return switch (this) {
      case AUTO ->
          switch (model) {
            case FP32 -> FLOAT32;
            case FP16 -> FLOAT16;
            case BF16 -> BFLOAT16;
            case FP8_E4M3 -> FP8_E4M3;
            case FP8_E5M2 -> FP8_E5M2;
            case INT8, UINT8, INT32, INT64 -> AUTO;
          };
      case FP8 -> FP8_E4M3;
      case FLOAT32,
          FLOAT16,
          BFLOAT16,
          FP8_E4M3,
          FP8_E5M2,
          FP8_INC,
          FP8_DS_MLA,
          NVFP4_DS_MLA,
          TURBOQUANT_K8V4,
          TURBOQUANT_4BIT_NC,
          TURBOQUANT_K3V4_NC,
          TURBOQUANT_3BIT_NC,
          INT4_PER_TOKEN_HEAD,
          INT8_PER_TOKEN_HEAD,
          FP8_PER_TOKEN_HEAD,
          NVFP4,
          NVFP4_4OVER6 ->
          this;
    };
  }

  /** Element type of one cached number, where a record is made of plain elements. */
  public Option<DType> elementType() {
    return switch (this) {
      case FLOAT32 -> Option.some(DType.FP32);
      case FLOAT16 -> Option.some(DType.FP16);
      case BFLOAT16 -> Option.some(DType.BF16);
      case FP8, FP8_E4M3, FP8_PER_TOKEN_HEAD -> Option.some(DType.FP8_E4M3);
      case FP8_E5M2 -> Option.some(DType.FP8_E5M2);
      case INT8_PER_TOKEN_HEAD -> Option.some(DType.INT8);
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

  /** Whether each token and head carries its own scale. */
  public boolean perTokenHead() {
    return this == INT4_PER_TOKEN_HEAD || this == INT8_PER_TOKEN_HEAD || this == FP8_PER_TOKEN_HEAD;
  }

  @Override
  public String toString() {
    return label;
  }
}
