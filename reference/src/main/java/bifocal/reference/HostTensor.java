package bifocal.reference;

import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.NarrowFloats;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.MemorySegment;

/**
 * Reads and writes single numbers of a floating-point tensor in host memory, whatever its type and
 * strides. Writing rounds to the nearest number of the tensor's type, ties to even.
 */
public final class HostTensor {
  private final TensorView view;
  private final MemorySegment data;

  private HostTensor(TensorView view) {
    this.view = view;
    this.data = view.data();
  }

  /**
   * Opens a tensor.
   *
   * @throws BifocalException {@code DEVICE_MISMATCH} when the host cannot read the memory, {@code
   *     DTYPE_MISMATCH} when the type is not fp32, fp16 or bf16
   */
  public static HostTensor over(TensorView view) {
    if (!view.device().hostReadable()) {
      throw BifocalException.of(
          ErrorCode.DEVICE_MISMATCH, "reading a tensor from the host", view.device(), Device.HOST);
    }
    return switch (view.dtype()) {
      case FP32, FP16, BF16 -> new HostTensor(view);
      case FP8_E4M3, FP8_E5M2, INT8, UINT8, INT32, INT64 ->
          throw BifocalException.of(
              ErrorCode.DTYPE_MISMATCH, "tensor read as numbers", view.dtype(), "fp32, fp16, bf16");
    };
  }

  /** The tensor. */
  public TensorView view() {
    return view;
  }

  /** A number of a vector. */
  public float at(long i) {
    return read(i * view.stride(0));
  }

  /** A number of a matrix. */
  public float at(long i, long j) {
    return read(i * view.stride(0) + j * view.stride(1));
  }

  /** A number of a tensor with three dimensions. */
  public float at(long i, long j, long k) {
    return read(i * view.stride(0) + j * view.stride(1) + k * view.stride(2));
  }

  /** Writes a number of a vector. */
  public void put(float value, long i) {
    write(i * view.stride(0), value);
  }

  /** Writes a number of a matrix. */
  public void put(float value, long i, long j) {
    write(i * view.stride(0) + j * view.stride(1), value);
  }

  /** Writes a number of a tensor with three dimensions. */
  public void put(float value, long i, long j, long k) {
    write(i * view.stride(0) + j * view.stride(1) + k * view.stride(2), value);
  }

  /** The number of {@code dtype} (fp32, fp16 or bf16) nearest to a value, ties to even. */
  public static float round(float value, DType dtype) {
    return switch (dtype) {
      case FP32 -> value;
      case FP16 -> NarrowFloats.fromFp16(NarrowFloats.toFp16(value));
      case BF16 -> NarrowFloats.fromBf16(NarrowFloats.toBf16(value));
      case FP8_E4M3, FP8_E5M2, INT8, UINT8, INT32, INT64 ->
          throw BifocalException.of(
              ErrorCode.DTYPE_MISMATCH, "type to round to", dtype, "fp32, fp16 or bf16");
    };
  }

  private float read(long element) {
    return NarrowFloats.load(data, element * view.dtype().bytes(), view.dtype());
  }

  private void write(long element, float value) {
    NarrowFloats.store(data, element * view.dtype().bytes(), view.dtype(), value);
  }
}
