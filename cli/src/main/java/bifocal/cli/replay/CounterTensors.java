package bifocal.cli.replay;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Queries, keys and values as a function of (seed, request, layer, position, head, element), so
 * that they do not depend on how requests are batched. Elements are uniform over 256 levels with
 * mean 0; keys and values have variance 1, queries such that a logit has variance 1.
 *
 * <p>One hash gives four elements. Not thread-safe.
 */
final class CounterTensors {
  private static final double HALF_RANGE = Math.sqrt(3);

  private final long seed;
  private final DType dtype;
  private final float[] numbers = new float[256];
  private final short[] halves = new short[256];
  private final float[] floatRow;
  private final short[] halfRow;

  /** Which tensor. */
  enum Kind {
    QUERY,
    KEY,
    VALUE
  }

  /**
   * @param amplitude standard deviation of the elements
   * @param rowLength most elements of one head
   */
  CounterTensors(long seed, DType dtype, double amplitude, int rowLength) {
    this.seed = seed;
    this.dtype = dtype;
    this.floatRow = new float[rowLength];
    this.halfRow = new short[rowLength];
    for (int level = 0; level < 256; level++) {
      float number = (float) ((2 * level - 255) / 256.0 * HALF_RANGE * amplitude);
      switch (dtype) {
        case FP32 -> numbers[level] = number;
        case FP16 -> {
          halves[level] = Float.floatToFloat16(number);
          numbers[level] = Float.float16ToFloat(halves[level]);
        }
        case BF16 -> {
          int bits = Float.floatToRawIntBits(number);
          halves[level] = (short) ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16);
          numbers[level] = Float.intBitsToFloat(halves[level] << 16);
        }
        case FP8_E4M3, FP8_E5M2, INT8, UINT8, INT32, INT64 ->
            throw BifocalException.of(
                ErrorCode.UNSUPPORTED, "type of replayed tensors", dtype, "fp32, fp16 or bf16");
      }
    }
  }

  /** Writes one head's elements, in the tensor's type. */
  void write(
      Kind kind,
      int request,
      int layer,
      int position,
      int head,
      int length,
      MemorySegment to,
      long offset) {
    int base = base(kind, request, layer, position, head);
    if (dtype == DType.FP32) {
      fill(base, length, floatRow);
      MemorySegment.copy(floatRow, 0, to, ValueLayout.JAVA_FLOAT, offset, length);
    } else {
      fillHalves(base, length);
      MemorySegment.copy(halfRow, 0, to, ValueLayout.JAVA_SHORT, offset, length);
    }
  }

  /** The same elements as numbers, after rounding to the tensor's type. */
  void read(Kind kind, int request, int layer, int position, int head, int length, float[] to) {
    fill(base(kind, request, layer, position, head), length, to);
  }

  private int base(Kind kind, int request, int layer, int position, int head) {
    long mixed = seed;
    mixed = mix(mixed + 0x9e3779b97f4a7c15L * (kind.ordinal() + 1));
    mixed = mix(mixed + 0x9e3779b97f4a7c15L * (request + 1L));
    mixed = mix(mixed + 0x9e3779b97f4a7c15L * (layer + 1L));
    mixed = mix(mixed + 0x9e3779b97f4a7c15L * (position + 1L));
    mixed = mix(mixed + 0x9e3779b97f4a7c15L * (head + 1L));
    return (int) (mixed >>> 32);
  }

  private void fill(int base, int length, float[] to) {
    for (int d = 0; d < length; d += 4) {
      int four = mix(base + (d >>> 2) * 0x9e3779b9);
      for (int lane = 0; lane < 4 && d + lane < length; lane++) {
        to[d + lane] = numbers[(four >>> (8 * lane)) & 255];
      }
    }
  }

  private void fillHalves(int base, int length) {
    int whole = length & ~3;
    for (int d = 0; d < whole; d += 4) {
      int four = mix(base + (d >>> 2) * 0x9e3779b9);
      halfRow[d] = halves[four & 255];
      halfRow[d + 1] = halves[(four >>> 8) & 255];
      halfRow[d + 2] = halves[(four >>> 16) & 255];
      halfRow[d + 3] = halves[four >>> 24];
    }
    int four = mix(base + (whole >>> 2) * 0x9e3779b9);
    for (int lane = 0; whole + lane < length; lane++) {
      halfRow[whole + lane] = halves[(four >>> (8 * lane)) & 255];
    }
  }

  private static int mix(int x) {
    int y = (x ^ (x >>> 16)) * 0x7feb352d;
    y = (y ^ (y >>> 15)) * 0x846ca68b;
    return y ^ (y >>> 16);
  }

  private static long mix(long x) {
    long y = (x ^ (x >>> 30)) * 0xbf58476d1ce4e5b9L;
    y = (y ^ (y >>> 27)) * 0x94d049bb133111ebL;
    return y ^ (y >>> 31);
  }
}
