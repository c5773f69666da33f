package bifocal.cpu.vector;

import static bifocal.cpu.vector.Products.FLOATS;
import static bifocal.cpu.vector.Products.LANES;

import bifocal.cpu.cache.KernelType;
import bifocal.cpu.raw.RawMemory;
import java.lang.foreign.MemorySegment;
import java.nio.ByteOrder;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.ShortVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;

/**
 * Turns pairs of small elements into two rows of fp32: group {@code g} of {@code n} pairs becomes
 * rows {@code 2g} (the first of each pair) and {@code 2g + 1}. Keys are groups of sixteen tokens
 * per pair of dimensions, values are groups of a head's dimensions per pair of tokens.
 *
 * <p>A pass unpacks one element of each pair: it shifts the element to the top of a word. No method
 * gives a vector to another, see {@link Exponentials}.
 */
final class Unpacking {
  private static final MemorySegment ALL = RawMemory.ALL;
  private static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;
  private static final VectorSpecies<Integer> INTS = IntVector.SPECIES_PREFERRED;
  private static final VectorSpecies<Short> SHORTS =
      VectorSpecies.of(short.class, VectorShape.forBitSize(LANES * Short.SIZE));

  private static final int SIGN = 0x80000000;
  private static final int HALF_MAGNITUDE = 0x7fff0000;
  private static final int BYTE_MAGNITUDE = 0x7f000000;
  private static final int INFINITY = 0x7f800000;
  private static final int NAN = 0x7fc00000;

  private Unpacking() {}

  static void pairs(KernelType type, long in, int groups, int n, long out, long outStride) {
    int second = type.bytes() == 1 ? Short.SIZE : 0;
    int first = second + Byte.SIZE * type.bytes();
    unpack(type, in, groups, n, out, 2 * outStride, first);
    unpack(type, in, groups, n, out + outStride, 2 * outStride, second);
  }

  private static void unpack(
      KernelType type, long in, int groups, int n, long out, long outStride, int shift) {
    switch (type) {
      case FLOAT32 -> throw new IllegalArgumentException("fp32 is not packed");
      case BFLOAT16 -> bfloat16(in, groups, n, out, outStride, shift);
      case FLOAT16 -> float16(in, groups, n, out, outStride, shift);
      case FLOAT8_E4M3, FLOAT8_PER_TOKEN_HEAD -> e4m3(in, groups, n, out, outStride, shift);
      case FLOAT8_E5M2 -> e5m2(in, groups, n, out, outStride, shift);
      case INT8_PER_TOKEN_HEAD -> int8(in, groups, n, out, outStride, shift);
    }
  }

  private static void bfloat16(long in, int groups, int n, long out, long outStride, int shift) {
    for (int g = 0; g < groups; g++) {
      long from = in + 4L * g * n;
      long to = out + g * outStride;
      for (int i = 0; i < n; i += LANES) {
        IntVector word =
            IntVector.fromMemorySegment(INTS, ALL, from + 4L * i, ORDER)
                .lanewise(VectorOperators.LSHL, shift);
        word.and(0xffff0000).reinterpretAsFloats().intoMemorySegment(ALL, to + 4L * i, ORDER);
      }
    }
  }

  /** A product moves the exponent to where fp32 has it, and makes subnormal numbers normal. */
  private static void float16(long in, int groups, int n, long out, long outStride, int shift) {
    for (int g = 0; g < groups; g++) {
      long from = in + 4L * g * n;
      long to = out + g * outStride;
      for (int i = 0; i < n; i += LANES) {
        IntVector word =
            IntVector.fromMemorySegment(INTS, ALL, from + 4L * i, ORDER)
                .lanewise(VectorOperators.LSHL, shift);
        IntVector magnitude = word.and(HALF_MAGNITUDE).lanewise(VectorOperators.LSHR, 3);
        IntVector finite = magnitude.reinterpretAsFloats().mul(0x1p112f).reinterpretAsInts();
        finite
            .blend(finite.or(INFINITY), magnitude.compare(VectorOperators.GE, 0x7c00 << 13))
            .or(word.and(SIGN))
            .reinterpretAsFloats()
            .intoMemorySegment(ALL, to + 4L * i, ORDER);
      }
    }
  }

  /** An e5m2 is the upper half of an fp16. */
  private static void e5m2(long in, int groups, int n, long out, long outStride, int shift) {
    for (int g = 0; g < groups; g++) {
      long from = in + 2L * g * n;
      long to = out + g * outStride;
      for (int i = 0; i < n; i += LANES) {
        IntVector word =
            ((IntVector)
                    ShortVector.fromMemorySegment(SHORTS, ALL, from + 2L * i, ORDER)
                        .convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0))
                .lanewise(VectorOperators.LSHL, shift);
        IntVector magnitude = word.and(BYTE_MAGNITUDE).lanewise(VectorOperators.LSHR, 3);
        IntVector finite = magnitude.reinterpretAsFloats().mul(0x1p112f).reinterpretAsInts();
        finite
            .blend(finite.or(INFINITY), magnitude.compare(VectorOperators.GE, 0x7c00 << 13))
            .or(word.and(SIGN))
            .reinterpretAsFloats()
            .intoMemorySegment(ALL, to + 4L * i, ORDER);
      }
    }
  }

  private static void e4m3(long in, int groups, int n, long out, long outStride, int shift) {
    for (int g = 0; g < groups; g++) {
      long from = in + 2L * g * n;
      long to = out + g * outStride;
      for (int i = 0; i < n; i += LANES) {
        IntVector word =
            ((IntVector)
                    ShortVector.fromMemorySegment(SHORTS, ALL, from + 2L * i, ORDER)
                        .convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0))
                .lanewise(VectorOperators.LSHL, shift);
        IntVector magnitude = word.and(BYTE_MAGNITUDE).lanewise(VectorOperators.LSHR, 4);
        IntVector finite = magnitude.reinterpretAsFloats().mul(0x1p120f).reinterpretAsInts();
        finite
            .blend(NAN, magnitude.compare(VectorOperators.EQ, 0x7f << 20))
            .or(word.and(SIGN))
            .reinterpretAsFloats()
            .intoMemorySegment(ALL, to + 4L * i, ORDER);
      }
    }
  }

  private static void int8(long in, int groups, int n, long out, long outStride, int shift) {
    for (int g = 0; g < groups; g++) {
      long from = in + 2L * g * n;
      long to = out + g * outStride;
      for (int i = 0; i < n; i += LANES) {
        IntVector word =
            ((IntVector)
                    ShortVector.fromMemorySegment(SHORTS, ALL, from + 2L * i, ORDER)
                        .convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0))
                .lanewise(VectorOperators.LSHL, shift);
        ((FloatVector) word.lanewise(VectorOperators.ASHR, 24).convert(VectorOperators.I2F, 0))
            .intoMemorySegment(ALL, to + 4L * i, ORDER);
      }
    }
  }

  /** Multiplies rows of sixteen numbers, lane by lane, with sixteen scales. */
  static void scaleColumns(long rows, int count, long scales) {
    for (int lane = 0; lane < 16; lane += LANES) {
      FloatVector scale = FloatVector.fromMemorySegment(FLOATS, ALL, scales + 4L * lane, ORDER);
      for (int r = 0; r < count; r++) {
        long at = rows + 64L * r + 4L * lane;
        FloatVector.fromMemorySegment(FLOATS, ALL, at, ORDER)
            .mul(scale)
            .intoMemorySegment(ALL, at, ORDER);
      }
    }
  }
}
