package bifocal.reference;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;

/**
 * How far a kernel may be from the reference.
 *
 * @param out bound of {@link Agreement#error}
 * @param lse bound of {@link Agreement#lseError}
 */
public record Tolerance(double out, double lse) {
  /**
   * The bounds for queries of a type.
   *
   * @throws BifocalException {@code DTYPE_MISMATCH} for a type no query has
   */
  public static Tolerance of(DType queries) {
    return switch (queries) {
      case FP32 -> new Tolerance(4e-6, 1e-5);
      case FP16 -> new Tolerance(3e-3, 3e-3);
      case BF16 -> new Tolerance(1.2e-2, 1.2e-2);
      case FP8_E4M3, FP8_E5M2, INT8, UINT8, INT32, INT64 ->
          throw BifocalException.of(
              ErrorCode.DTYPE_MISMATCH, "type of queries", queries, "fp32, fp16 or bf16");
    };
  }
}
