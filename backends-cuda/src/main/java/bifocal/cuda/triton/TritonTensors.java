package bifocal.cuda.triton;

import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.memory.DeviceTensors;

/**
 * What is required of tensors before a kernel sees their addresses.
 *
 * @param layer the layer
 * @param device where its tensors are
 */
record TritonTensors(AttentionLayerSpec.Dense layer, Device device) {
  /** What the compiler was promised of addresses in bytes and of strides in elements. */
  private static final int MULTIPLE = 16;

  void requireQueries(TensorView q, int tokens) {
    requireRows(q, "queries", layer.dtype(), tokens, layer.numHeads());
  }

  /**
   * @param wide whether there are kernels that write fp32
   */
  void requireOutput(TensorView out, int tokens, boolean wide) {
    if (out.dtype() != DType.FP32 || layer.dtype() == DType.FP32) {
      requireRows(out, "output", layer.dtype(), tokens, layer.numHeads());
    } else if (wide) {
      requireRows(out, "output", DType.FP32, tokens, layer.numHeads());
    } else {
      throw BifocalException.of(
              ErrorCode.DTYPE_MISMATCH, "output of these kernels", out.dtype(), layer.dtype())
          .withRemedy(
              "take the output in the type of the queries and widen it afterwards, or build the"
                  + " pack with \"out\": \"fp32\" for this layer's prefill, decode and merge");
    }
  }

  void requireKeyValues(TensorView tensor, String what, long tokens) {
    requireRows(tensor, what, layer.dtype(), tokens, layer.numKvHeads());
  }

  void requireLse(TensorView lse, int tokens) {
    if (lse.dtype() != DType.FP32) {
      throw BifocalException.of(ErrorCode.DTYPE_MISMATCH, "log-sum-exp", lse.dtype(), DType.FP32);
    }
    DeviceTensors.requireAlive(lse, "log-sum-exp", device);
    if (lse.rank() != 2 || lse.size(0) < tokens || lse.size(1) != layer.numHeads()) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          "log-sum-exp",
          lse,
          "[at least " + tokens + ", " + layer.numHeads() + "]");
    }
  }

  private void requireRows(TensorView tensor, String what, DType type, long tokens, int heads) {
    if (tensor.dtype() != type) {
      throw BifocalException.of(ErrorCode.DTYPE_MISMATCH, what, tensor.dtype(), type);
    }
    DeviceTensors.requireAlive(tensor, what, device);
    boolean fits =
        tensor.rank() == 3
            && tensor.size(0) >= tokens
            && tensor.size(1) == heads
            && tensor.size(2) == layer.headSize();
    if (!fits) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          what,
          tensor,
          "[at least " + tokens + ", " + heads + ", " + layer.headSize() + "]");
    }
    boolean aligned =
        tensor.stride(2) == 1
            && tensor.stride(0) % MULTIPLE == 0
            && tensor.stride(1) % MULTIPLE == 0
            && tensor.address() % MULTIPLE == 0;
    if (!aligned) {
      throw DeviceTensors.misplaced(
          tensor, what, "multiples of " + MULTIPLE + ", and 1 inside a head");
    }
  }
}
