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
 */
final class Unpacking {
  private static final MemorySegment ALL = RawMemory.ALL;
  private static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;
  private static final VectorSpecies<Integer> INTS = IntVector.SPECIES_PREFERRED;
  private static final VectorSpecies<Short> SHORTS =
      VectorSpecies.of(short.class, VectorShape.forBitSize(LANES * Short.SIZE));
  private static final int HIGH = 0xffff0000;

  private Unpacking() {}

  static void pairs(KernelType type, long in, int groups, int n, long out, long outStride) {
    switch (type) {
      case FLOAT32 -> throw new IllegalArgumentException("fp32 is not packed");
      case BFLOAT16 -> bfloat16(in, groups, n, out, outStride);
      case FLOAT16 -> float16(in, groups, n, out, outStride);
      case FLOAT8_E4M3, FLOAT8_PER_TOKEN_HEAD -> float8E4m3(in, groups, n, out, outStride);
      case FLOAT8_E5M2 -> float8E5m2(in, groups, n, out, outStride);
      case INT8_PER_TOKEN_HEAD -> int8(in, groups, n, out, outStride);
    }
  }

  private static void bfloat16(long in, int groups, int n, long out, long outStride) {
    for (int g = 0; g < groups; g++) {
      long low = out + 2L * g * outStride;
      long from = in + 4L * g * n;
      for (int i = 0; i < n; i += LANES) {
        IntVector pairs = words(from + 4L * i);
        pairs
            .lanewise(VectorOperators.LSHL, Short.SIZE)
            .reinterpretAsFloats()
            .intoMemorySegment(ALL, low + 4L * i, ORDER);
        pairs
            .and(HIGH)
            .reinterpretAsFloats()
            .intoMemorySegment(ALL, low + outStride + 4L * i, ORDER);
      }
    }
  }

  private static void float16(long in, int groups, int n, long out, long outStride) {
    for (int g = 0; g < groups; g++) {
      long low = out + 2L * g * outStride;
      long from = in + 4L * g * n;
      for (int i = 0; i < n; i += LANES) {
        IntVector pairs = words(from + 4L * i);
        half(pairs.lanewise(VectorOperators.LSHL, Short.SIZE))
            .intoMemorySegment(ALL, low + 4L * i, ORDER);
        half(pairs).intoMemorySegment(ALL, low + outStride + 4L * i, ORDER);
      }
    }
  }

  private static void float8E5m2(long in, int groups, int n, long out, long outStride) {
    for (int g = 0; g < groups; g++) {
      long low = out + 2L * g * outStride;
      long from = in + 2L * g * n;
      for (int i = 0; i < n; i += LANES) {
        IntVector pairs = halfWords(from + 2L * i);
        // An e5m2 is the upper half of an fp16.
        half(pairs.lanewise(VectorOperators.LSHL, 24)).intoMemorySegment(ALL, low + 4L * i, ORDER);
        half(pairs.and(0xff00).lanewise(VectorOperators.LSHL, Short.SIZE))
            .intoMemorySegment(ALL, low + outStride + 4L * i, ORDER);
      }
    }
  }

  private static void float8E4m3(long in, int groups, int n, long out, long outStride) {
    for (int g = 0; g < groups; g++) {
      long low = out + 2L * g * outStride;
      long from = in + 2L * g * n;
      for (int i = 0; i < n; i += LANES) {
        IntVector pairs = halfWords(from + 2L * i);
        e4m3(pairs.lanewise(VectorOperators.LSHL, 24)).intoMemorySegment(ALL, low + 4L * i, ORDER);
        e4m3(pairs.and(0xff00).lanewise(VectorOperators.LSHL, Short.SIZE))
            .intoMemorySegment(ALL, low + outStride + 4L * i, ORDER);
      }
    }
  }

  private static void int8(long in, int groups, int n, long out, long outStride) {
    for (int g = 0; g < groups; g++) {
      long low = out + 2L * g * outStride;
      long from = in + 2L * g * n;
      for (int i = 0; i < n; i += LANES) {
        IntVector pairs = halfWords(from + 2L * i);
        signed(pairs.lanewise(VectorOperators.LSHL, 24))
            .intoMemorySegment(ALL, low + 4L * i, ORDER);
        signed(pairs.lanewise(VectorOperators.LSHL, 16))
            .intoMemorySegment(ALL, low + outStride + 4L * i, ORDER);
      }
    }
  }

  /** The fp16 in the upper half of each word. */
  private static FloatVector half(IntVector words) {
    IntVector magnitude = words.and(0x7fff0000).lanewise(VectorOperators.LSHR, 3);
    // Rebias the exponent by a product, which also makes subnormal numbers normal.
    IntVector finite = magnitude.reinterpretAsFloats().mul(0x1p112f).reinterpretAsInts();
    IntVector special = finite.or(0x7f800000);
    return finite
        .blend(special, magnitude.compare(VectorOperators.GE, 0x7c00 << 13))
        .or(words.and(Integer.MIN_VALUE))
        .reinterpretAsFloats();
  }

  /** The e4m3 in the upper byte of each word. */
  private static FloatVector e4m3(IntVector words) {
    IntVector magnitude = words.and(0x7f000000).lanewise(VectorOperators.LSHR, 4);
    IntVector finite = magnitude.reinterpretAsFloats().mul(0x1p120f).reinterpretAsInts();
    return finite
        .blend(0x7fc00000, magnitude.compare(VectorOperators.EQ, 0x7f << 20))
        .or(words.and(Integer.MIN_VALUE))
        .reinterpretAsFloats();
  }

  /** The int8 in the upper byte of each word. */
  private static FloatVector signed(IntVector words) {
    return (FloatVector) words.lanewise(VectorOperators.ASHR, 24).convert(VectorOperators.I2F, 0);
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

  private static IntVector words(long address) {
    return IntVector.fromMemorySegment(INTS, ALL, address, ORDER);
  }

  private static IntVector halfWords(long address) {
    return (IntVector)
        ShortVector.fromMemorySegment(SHORTS, ALL, address, ORDER)
            .convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0);
  }
}
