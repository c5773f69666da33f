package bifocal.cuda.memory;

import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;

/**
 * What is required of tensors before a maker's kernel sees their addresses. These write outputs and
 * sums without gaps, and check neither bounds nor, everywhere, types.
 *
 * @param layer the layer
 * @param device where its tensors are
 */
public record GaplessTensors(AttentionLayerSpec.Dense layer, Device device) {
  /** Bytes that are read at once: what addresses are multiples of. */
  public static final int VECTOR_BYTES = 16;

  private static final int VECTOR = 8;

  /** Queries, read as vectors. */
  public void requireQueries(TensorView q, int tokens) {
    requireRows(q, "queries", tokens);
    boolean aligned =
        q.stride(2) == 1
            && q.stride(0) % VECTOR == 0
            && q.stride(1) % VECTOR == 0
            && q.address() % VECTOR_BYTES == 0;
    if (!aligned) {
      throw DeviceTensors.misplaced(
          q, "queries", "multiples of " + VECTOR + ", and 1 inside a head");
    }
  }

  /** Outputs, whose rows and heads follow each other. */
  public void requireOutput(TensorView out, int tokens) {
    requireRows(out, "output", tokens);
    boolean together =
        out.stride(2) == 1
            && out.stride(1) == layer.headSize()
            && out.stride(0) == (long) layer.numHeads() * layer.headSize()
            && out.address() % VECTOR_BYTES == 0;
    if (!together) {
      throw DeviceTensors.misplaced(out, "output", "rows and heads without gaps");
    }
  }

  /** Log-sum-exps, whose rows follow each other. */
  public void requireLse(TensorView lse, int tokens) {
    if (lse.dtype() != DType.FP32) {
      throw BifocalException.of(ErrorCode.DTYPE_MISMATCH, "log-sum-exp", lse.dtype(), DType.FP32);
    }
    DeviceTensors.requireAlive(lse, "log-sum-exp", device);
    if (lse.rank() != 2
        || lse.size(0) < tokens
        || lse.size(1) != layer.numHeads()
        || lse.stride(1) != 1
        || lse.stride(0) != layer.numHeads()) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          "log-sum-exp",
          lse,
          "[at least " + tokens + ", " + layer.numHeads() + "] without gaps");
    }
  }

  private void requireRows(TensorView tensor, String what, int tokens) {
    if (tensor.dtype() != layer.dtype()) {
      throw BifocalException.of(ErrorCode.DTYPE_MISMATCH, what, tensor.dtype(), layer.dtype());
    }
    DeviceTensors.requireAlive(tensor, what, device);
    boolean fits =
        tensor.rank() == 3
            && tensor.size(0) >= tokens
            && tensor.size(1) == layer.numHeads()
            && tensor.size(2) == layer.headSize();
    if (!fits) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          what,
          tensor,
          "[at least " + tokens + ", " + layer.numHeads() + ", " + layer.headSize() + "]");
    }
  }
}
