package bifocal.core.tensor;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Converts between {@code float} and the narrower formats tensors are stored in. Rounding is to the
 * nearest value, ties to the one with an even last bit.
 *
 * <p>fp16 and bf16 overflow to infinity, as IEEE 754 says. The 8-bit formats saturate at their
 * largest finite value, infinities included, because a quantised cache must stay finite; NaN stays
 * NaN in all of them.
 */
public final class NarrowFloats {
  /** Largest finite e4m3 value. The format has no infinity. */
  public static final float E4M3_MAX = 448f;

  /** Largest finite e5m2 value. */
  public static final float E5M2_MAX = 57344f;

  private static final byte E4M3_NAN = 0x7F;
  private static final byte E5M2_NAN = 0x7E;
  private static final float[] FROM_E4M3 = table(3, 7);
  private static final float[] FROM_E5M2 = table(2, 15);

  private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;
  private static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;

  private NarrowFloats() {}

  /** Bits of the nearest fp16 value. */
  public static short toFp16(float value) {
    return Float.floatToFloat16(value);
  }

  /** Value of fp16 bits. */
  public static float fromFp16(short bits) {
    return Float.float16ToFloat(bits);
  }

  /** Bits of the nearest bf16 value. */
  public static short toBf16(float value) {
    int bits = Float.floatToRawIntBits(value);
    if (Float.isNaN(value)) {
      return (short) (bits >>> 16 | 0x40);
    }
    int lastKept = bits >>> 16 & 1;
    return (short) ((bits + 0x7FFF + lastKept) >>> 16);
  }

  /** Value of bf16 bits. */
  public static float fromBf16(short bits) {
    return Float.intBitsToFloat(bits << 16);
  }

  /** Bits of the nearest e4m3 value, at most {@link #E4M3_MAX} in magnitude. */
  public static byte toE4m3(float value) {
    return toEightBits(value, 3, 7, E4M3_MAX, E4M3_NAN);
  }

  /** Value of e4m3 bits. */
  public static float fromE4m3(byte bits) {
    return FROM_E4M3[bits & 0xFF];
  }

  /** Bits of the nearest e5m2 value, at most {@link #E5M2_MAX} in magnitude. */
  public static byte toE5m2(float value) {
    return toEightBits(value, 2, 15, E5M2_MAX, E5M2_NAN);
  }

  /** Value of e5m2 bits. */
  public static float fromE5m2(byte bits) {
    return FROM_E5M2[bits & 0xFF];
  }

  /** Nearest integer within -127 to 127; NaN becomes 0. */
  public static byte toInt8(float value) {
    double nearest = Math.rint(value);
    return Double.isNaN(nearest) ? 0 : (byte) Math.clamp(nearest, -127, 127);
  }

  /**
   * Stores a value as one element.
   *
   * @param offset of the element, in bytes
   * @throws BifocalException {@code DTYPE_MISMATCH} for a type that holds no fractions, except int8
   */
  public static void store(MemorySegment memory, long offset, DType type, float value) {
    switch (type) {
      case FP32 -> memory.set(FLOAT, offset, value);
      case FP16 -> memory.set(SHORT, offset, toFp16(value));
      case BF16 -> memory.set(SHORT, offset, toBf16(value));
      case FP8_E4M3 -> memory.set(ValueLayout.JAVA_BYTE, offset, toE4m3(value));
      case FP8_E5M2 -> memory.set(ValueLayout.JAVA_BYTE, offset, toE5m2(value));
      case INT8 -> memory.set(ValueLayout.JAVA_BYTE, offset, toInt8(value));
      case UINT8, INT32, INT64 -> throw notAFloat(type);
    }
  }

  /**
   * Loads one element.
   *
   * @param offset of the element, in bytes
   * @throws BifocalException {@code DTYPE_MISMATCH} for a type that holds no fractions, except int8
   */
  public static float load(MemorySegment memory, long offset, DType type) {
    return switch (type) {
      case FP32 -> memory.get(FLOAT, offset);
      case FP16 -> fromFp16(memory.get(SHORT, offset));
      case BF16 -> fromBf16(memory.get(SHORT, offset));
      case FP8_E4M3 -> fromE4m3(memory.get(ValueLayout.JAVA_BYTE, offset));
      case FP8_E5M2 -> fromE5m2(memory.get(ValueLayout.JAVA_BYTE, offset));
      case INT8 -> memory.get(ValueLayout.JAVA_BYTE, offset);
      case UINT8, INT32, INT64 -> throw notAFloat(type);
    };
  }

  private static BifocalException notAFloat(DType type) {
    return BifocalException.of(
        ErrorCode.DTYPE_MISMATCH, "element type of numbers", type, "a floating-point type or int8");
  }

  /**
   * Rounds on the grid of the format: neighbours of a magnitude in {@code [2^e, 2^(e+1))} are
   * {@code 2^(e - mantissa)} apart, and below the smallest normal number the grid gets no finer.
   * Scaling by a power of two is exact in {@code double}, so {@code rint} does the rounding.
   */
  private static byte toEightBits(float value, int mantissa, int bias, float max, byte nan) {
    int sign = Float.floatToRawIntBits(value) >>> 24 & 0x80;
    if (Float.isNaN(value)) {
      return (byte) (sign | nan);
    }
    double magnitude = Math.min(Math.abs(value), max);
    int exponent = Math.max(Math.getExponent(magnitude), 1 - bias);
    long steps = (long) Math.rint(Math.scalb(magnitude, mantissa - exponent));
    // Steps beyond one binade carry into the exponent field, which is what the next binade means.
    long bits = ((long) (exponent + bias - 1) << mantissa) + steps;
    return (byte) (sign | bits);
  }

  private static float[] table(int mantissa, int bias) {
    float[] values = new float[256];
    for (int bits = 0; bits < 256; bits++) {
      values[bits] = decode(bits, mantissa, bias);
    }
    return values;
  }

  private static float decode(int bits, int mantissa, int bias) {
    int exponentField = (bits & 0x7F) >>> mantissa;
    int fraction = bits & (1 << mantissa) - 1;
    int largestField = 0x7F >>> mantissa;
    boolean ieee = mantissa == 2;
    float sign = (bits & 0x80) == 0 ? 1f : -1f;
    if (ieee && exponentField == largestField) {
      return fraction == 0 ? sign * Float.POSITIVE_INFINITY : Float.NaN;
    }
    if (!ieee && (bits & 0x7F) == 0x7F) {
      return Float.NaN;
    }
    int implicitOne = exponentField == 0 ? 0 : 1 << mantissa;
    int exponent = Math.max(exponentField, 1) - bias;
    return sign * Math.scalb((float) (implicitOne + fraction), exponent - mantissa);
  }
}
