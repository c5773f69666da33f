package bifocal.tvm;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import io.vavr.control.Option;
import java.util.Arrays;

/**
 * An element type as DLPack writes it.
 *
 * @param code kind of number
 * @param bits of one number
 * @param lanes numbers in one element
 */
public record DlType(int code, int bits, int lanes) {
  private static final int INT = 0;
  private static final int UINT = 1;
  private static final int FLOAT = 2;
  private static final int BFLOAT = 4;
  private static final int FLOAT8_E4M3FN = 10;
  private static final int FLOAT8_E5M2 = 12;

  /** How DLPack writes an element type of ours. */
  public static DlType of(DType type) {
    return new DlType(code(type), type.bytes() * Byte.SIZE, 1);
  }

  /**
   * The element type of ours.
   *
   * @throws BifocalException {@code UNSUPPORTED} where there is none
   */
  public DType dtype() {
    return Option.ofOptional(
            Arrays.stream(DType.values()).filter(type -> of(type).equals(this)).findFirst())
        .getOrElseThrow(
            () ->
                BifocalException.of(
                    ErrorCode.UNSUPPORTED,
                    "DLPack element type",
                    this,
                    "one of " + Arrays.toString(DType.values())));
  }

  static int code(DType type) {
    return switch (type) {
      case FP32, FP16 -> FLOAT;
      case BF16 -> BFLOAT;
      case FP8_E4M3 -> FLOAT8_E4M3FN;
      case FP8_E5M2 -> FLOAT8_E5M2;
      case INT8, INT32, INT64 -> INT;
      case UINT8 -> UINT;
    };
  }
}
