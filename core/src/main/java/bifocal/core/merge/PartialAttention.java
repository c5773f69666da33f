package bifocal.core.merge;

import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.NarrowFloats;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.ValueLayout;

/**
 * Attention over some of the keys: the normalised output and the log-sum-exp of each query and
 * head, in host memory and of any strides. Two of them over disjoint keys make the attention over
 * all their keys.
 *
 * <p>Kernels do not agree on the log-sum-exp of nothing: some leave minus infinity, some plus
 * infinity, some whatever was there. So the number of keys decides whether a part is empty; an
 * empty part's output and log-sum-exp are never read. An infinite log-sum-exp says the same of a
 * row whose keys were all masked.
 *
 * <p>A sink may be in one of the parts only.
 *
 * @param out {@code [queries, heads, headSizeV]}, fp32, fp16 or bf16
 * @param lse fp32 {@code [queries, heads]}
 * @param base of the logarithm
 * @param keys keys that each query saw, at least one for each query; heads do not differ
 */
public record PartialAttention(TensorView out, TensorView lse, LogBase base, int[] keys) {
  private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

  /** Base of a log-sum-exp. */
  public enum LogBase {
    /** The natural logarithm. */
    E(1),
    /** As kernels that compute powers of two return it. */
    TWO(Math.log(2));

    private final double toNatural;

    LogBase(double toNatural) {
      this.toNatural = toNatural;
    }

    /** The natural logarithm of what this base's logarithm was given of. */
    public double natural(double log) {
      return log * toNatural;
    }
  }

  /**
   * @throws BifocalException {@code SHAPE_MISMATCH}, {@code DTYPE_MISMATCH} or {@code
   *     DEVICE_MISMATCH}
   */
  public PartialAttention {
    requireOutput("output of a part", out);
    lse.require("log-sum-exp of a part", DType.FP32, Device.HOST, out.size(0), out.size(1));
    if (keys.length < out.size(0)) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "key counts of a part", keys.length, out.size(0));
    }
  }

  /**
   * Joins two parts, row by row; the result may lie over either. A row that neither part has keys
   * for becomes 0, with minus infinity as its log-sum-exp.
   *
   * @param other attention over other keys of the same queries
   * @param mergedOut receives the outputs, of any floating-point type
   * @param mergedLse receives the natural log-sum-exps, fp32
   * @throws BifocalException {@code SHAPE_MISMATCH}, {@code DTYPE_MISMATCH} or {@code
   *     DEVICE_MISMATCH}
   */
  public void mergeInto(PartialAttention other, TensorView mergedOut, TensorView mergedLse) {
    requireShape("output of the other part", other.out);
    requireOutput("merged output", mergedOut);
    requireShape("merged output", mergedOut);
    mergedLse.require("merged log-sum-exp", DType.FP32, Device.HOST, out.size(0), out.size(1));
    for (long query = 0; query < out.size(0); query++) {
      for (long head = 0; head < out.size(1); head++) {
        mergeRow(other, mergedOut, mergedLse, query, head);
      }
    }
  }

  private void mergeRow(
      PartialAttention other, TensorView mergedOut, TensorView mergedLse, long query, long head) {
    double mine = logSumExp(query, head);
    double theirs = other.logSumExp(query, head);
    double most = Math.max(mine, theirs);
    double weight = mine == Double.NEGATIVE_INFINITY ? 0 : Math.exp(mine - most);
    double otherWeight = theirs == Double.NEGATIVE_INFINITY ? 0 : Math.exp(theirs - most);
    double sum = weight + otherWeight;
    for (long d = 0; d < out.size(2); d++) {
      // What has no weight is not read: it may be NaN, which no factor of zero removes.
      double value = weight == 0 ? 0 : weight / sum * read(out, query, head, d);
      value += otherWeight == 0 ? 0 : otherWeight / sum * read(other.out, query, head, d);
      NarrowFloats.store(
          mergedOut.data(), offset(mergedOut, query, head, d), mergedOut.dtype(), (float) value);
    }
    mergedLse
        .data()
        .set(
            FLOAT,
            (query * mergedLse.stride(0) + head * mergedLse.stride(1)) * Float.BYTES,
            (float) (sum == 0 ? Double.NEGATIVE_INFINITY : most + Math.log(sum)));
  }

  /** Natural log-sum-exp of a row, minus infinity when it saw no key. */
  private double logSumExp(long query, long head) {
    if (keys[(int) query] <= 0) {
      return Double.NEGATIVE_INFINITY;
    }
    float log = lse.data().get(FLOAT, (query * lse.stride(0) + head * lse.stride(1)) * Float.BYTES);
    return Float.isInfinite(log) ? Double.NEGATIVE_INFINITY : base.natural(log);
  }

  private static float read(TensorView tensor, long query, long head, long d) {
    return NarrowFloats.load(tensor.data(), offset(tensor, query, head, d), tensor.dtype());
  }

  private static long offset(TensorView tensor, long query, long head, long d) {
    return (query * tensor.stride(0) + head * tensor.stride(1) + d * tensor.stride(2))
        * tensor.dtype().bytes();
  }

  private void requireShape(String name, TensorView tensor) {
    tensor.require(name, tensor.dtype(), Device.HOST, out.size(0), out.size(1), out.size(2));
  }

  private static void requireOutput(String name, TensorView tensor) {
    tensor.require(name, tensor.dtype(), Device.HOST, -1, -1, -1);
    switch (tensor.dtype()) {
      case FP32, FP16, BF16 -> {}
      case FP8_E4M3, FP8_E5M2, INT8, UINT8, INT32, INT64 ->
          throw BifocalException.of(
              ErrorCode.DTYPE_MISMATCH, name, tensor.dtype(), "fp32, fp16 or bf16");
    }
  }
}
