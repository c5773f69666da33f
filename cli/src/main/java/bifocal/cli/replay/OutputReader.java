package bifocal.cli.replay;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Reads output vectors as numbers; fills an output with NaN before a run must write it. */
final class OutputReader {
  /** Bytes that make every element NaN, in any type. */
  static final byte POISON = (byte) 0xFF;

  private final float[] numbers;
  private final short[] halves;

  OutputReader(int headSize) {
    numbers = new float[headSize];
    halves = new short[headSize];
  }

  /** One row's head; valid until the next call. */
  float[] read(TensorView out, int row, int head) {
    MemorySegment data = out.data();
    int length = numbers.length;
    long offset = (row * out.stride(0) + head * out.stride(1)) * out.dtype().bytes();
    switch (out.dtype()) {
      case FP32 -> MemorySegment.copy(data, ValueLayout.JAVA_FLOAT, offset, numbers, 0, length);
      case FP16 -> {
        MemorySegment.copy(data, ValueLayout.JAVA_SHORT, offset, halves, 0, length);
        for (int d = 0; d < length; d++) {
          numbers[d] = Float.float16ToFloat(halves[d]);
        }
      }
      case BF16 -> {
        MemorySegment.copy(data, ValueLayout.JAVA_SHORT, offset, halves, 0, length);
        for (int d = 0; d < length; d++) {
          numbers[d] = Float.intBitsToFloat(halves[d] << 16);
        }
      }
      case FP8_E4M3, FP8_E5M2, INT8, UINT8, INT32, INT64 ->
          throw BifocalException.of(
              ErrorCode.DTYPE_MISMATCH, "type of outputs", out.dtype(), "fp32, fp16 or bf16");
    }
    return numbers;
  }
}
