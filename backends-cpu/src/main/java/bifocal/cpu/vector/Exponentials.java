package bifocal.cpu.vector;

import static bifocal.cpu.vector.Products.FLOATS;
import static bifocal.cpu.vector.Products.LANES;

import bifocal.cpu.raw.RawMemory;
import java.lang.foreign.MemorySegment;
import java.nio.ByteOrder;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorShuffle;

/**
 * Row-wise passes over scores: softmax weights, soft caps and ALiBi.
 *
 * <p>No method gives a vector to another or gets one from it: where the JIT does not inline such a
 * call, each vector becomes an object. So 2^x is spelled out where it is needed.
 */
final class Exponentials {
  private static final MemorySegment ALL = RawMemory.ALL;
  private static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;
  private static final float LOG2_E = 1.44269504f;

  /** Adding it leaves the nearest integer in the low bits of the sum. */
  private static final float ROUND = 0x1.8p23f;

  private static final int MANTISSA_BITS = 23;

  /** The bits of 1. */
  private static final int ONE = Float.floatToRawIntBits(1f);

  /** Exponents below would leave the normal numbers; weights there are as good as zero. */
  private static final float LEAST_EXPONENT = -126f;

  // 2^f for f in -0.5 .. 0.5, interpolated at Chebyshev nodes; relative error 2e-8.
  private static final float P1 = 0x1.62e430p-1f;
  private static final float P2 = 0x1.ebfbe0p-3f;
  private static final float P3 = 0x1.c6aeccp-5f;
  private static final float P4 = 0x1.3b2a1cp-7f;
  private static final float P5 = 0x1.5f48c0p-10f;
  private static final float P6 = 0x1.444000p-13f;

  // tanh(y) = y + y^3 T(y^2) for y in -0.65 .. 0.65, interpolated at Chebyshev nodes; error 6e-9.
  private static final float SMALL = 0.625f;
  private static final float T0 = -0.33333334f;
  private static final float T1 = 0.13333291f;
  private static final float T2 = -0.05395635f;
  private static final float T3 = 0.021746187f;
  private static final float T4 = -0.008272457f;
  private static final float T5 = 0.0022149028f;

  /** Beyond it tanh is 1 in fp32. */
  private static final float SATURATED = 10f;

  private static final FloatVector LANE_NUMBERS = laneNumbers();

  /**
   * Rotations by half the lanes, a quarter, and so on, by which lanes are summed. The API leaves
   * the order of its own sum open, and the interpreter takes another one than compiled code, so
   * equal steps would differ in their last bits.
   */
  private static final VectorShuffle<Float>[] TURNS = turns();

  private Exponentials() {}

  @SuppressWarnings({"unchecked", "rawtypes"}) // an array of a generic type
  private static VectorShuffle<Float>[] turns() {
    VectorShuffle<Float>[] turns = new VectorShuffle[Integer.numberOfTrailingZeros(LANES)];
    for (int i = 0; i < turns.length; i++) {
      turns[i] = VectorShuffle.iota(FLOATS, LANES >> (i + 1), 1, true);
    }
    return turns;
  }

  private static FloatVector laneNumbers() {
    float[] numbers = new float[LANES];
    for (int lane = 0; lane < LANES; lane++) {
      numbers[lane] = lane;
    }
    return FloatVector.fromArray(FLOATS, numbers, 0);
  }

  /** The largest score of {@code from .. to - 1} and a given one. */
  static float largest(long s, int from, int to, float least) {
    float scalar = least;
    int i = from;
    for (; i < to && i % LANES != 0; i++) {
      float x = RawMemory.readFloat(s + 4L * i);
      scalar = x > scalar ? x : scalar;
    }
    int full = to - to % LANES;
    if (i < full) {
      scalar = largestOfFull(s, i, full, scalar);
      i = full;
    }
    for (; i < to; i++) {
      float x = RawMemory.readFloat(s + 4L * i);
      scalar = x > scalar ? x : scalar;
    }
    return scalar;
  }

  private static float largestOfFull(long s, int from, int to, float least) {
    // Compare and blend: the max of the API also orders zeroes and NaN, which takes five times as
    // long.
    FloatVector largest = FloatVector.broadcast(FLOATS, least);
    for (int i = from; i < to; i += LANES) {
      FloatVector x = FloatVector.fromMemorySegment(FLOATS, ALL, s + 4L * i, ORDER);
      largest = largest.blend(x, x.compare(VectorOperators.GT, largest));
    }
    return largest.reduceLanes(VectorOperators.MAX);
  }

  /**
   * Replaces scores {@code from .. to - 1} by {@code exp(score - largest)} and returns their sum;
   * other numbers of the vectors in which they lie become 0.
   */
  static float weigh(long s, int from, int to, float largest) {
    int first = from - from % LANES;
    int full = to - to % LANES;
    float sum = 0;
    int i = first;
    if (first < from) {
      sum += weighSome(s, first, from, to, largest);
      i += LANES;
    }
    if (i < full) {
      sum += weighFull(s, i, full, largest);
      i = full;
    }
    if (i < to) {
      sum += weighSome(s, i, from, to, largest);
    }
    return sum;
  }

  private static float weighFull(long s, int from, int to, float largest) {
    FloatVector sum = FloatVector.zero(FLOATS);
    for (int i = from; i < to; i += LANES) {
      FloatVector x =
          FloatVector.fromMemorySegment(FLOATS, ALL, s + 4L * i, ORDER).sub(largest).mul(LOG2_E);
      FloatVector y = x.blend(LEAST_EXPONENT, x.compare(VectorOperators.LT, LEAST_EXPONENT));
      FloatVector rounded = y.add(ROUND);
      FloatVector f = y.sub(rounded.sub(ROUND));
      FloatVector p = FloatVector.broadcast(FLOATS, P6);
      p = p.fma(f, FloatVector.broadcast(FLOATS, P5));
      p = p.fma(f, FloatVector.broadcast(FLOATS, P4));
      p = p.fma(f, FloatVector.broadcast(FLOATS, P3));
      p = p.fma(f, FloatVector.broadcast(FLOATS, P2));
      p = p.fma(f, FloatVector.broadcast(FLOATS, P1));
      p = p.fma(f, FloatVector.broadcast(FLOATS, 1f));
      // A factor: added to an exponent, the bits of a NaN could make a number of it.
      FloatVector weight =
          p.mul(
              rounded
                  .reinterpretAsInts()
                  .lanewise(VectorOperators.LSHL, MANTISSA_BITS)
                  .add(ONE)
                  .reinterpretAsFloats());
      weight.intoMemorySegment(ALL, s + 4L * i, ORDER);
      sum = sum.add(weight);
    }
    for (VectorShuffle<Float> turn : TURNS) {
      sum = sum.add(sum.rearrange(turn));
    }
    return sum.lane(0);
  }

  private static float weighSome(long s, int at, int from, int to, float largest) {
    FloatVector x =
        FloatVector.fromMemorySegment(FLOATS, ALL, s + 4L * at, ORDER).sub(largest).mul(LOG2_E);
    FloatVector y = x.blend(LEAST_EXPONENT, x.compare(VectorOperators.LT, LEAST_EXPONENT));
    FloatVector rounded = y.add(ROUND);
    FloatVector f = y.sub(rounded.sub(ROUND));
    FloatVector p = FloatVector.broadcast(FLOATS, P6);
    p = p.fma(f, FloatVector.broadcast(FLOATS, P5));
    p = p.fma(f, FloatVector.broadcast(FLOATS, P4));
    p = p.fma(f, FloatVector.broadcast(FLOATS, P3));
    p = p.fma(f, FloatVector.broadcast(FLOATS, P2));
    p = p.fma(f, FloatVector.broadcast(FLOATS, P1));
    p = p.fma(f, FloatVector.broadcast(FLOATS, 1f));
    FloatVector weight =
        p.mul(
            rounded
                .reinterpretAsInts()
                .lanewise(VectorOperators.LSHL, MANTISSA_BITS)
                .add(ONE)
                .reinterpretAsFloats());
    VectorMask<Float> visible =
        LANE_NUMBERS
            .compare(VectorOperators.GE, (float) (from - at))
            .and(LANE_NUMBERS.compare(VectorOperators.LT, (float) (to - at)));
    FloatVector kept = FloatVector.zero(FLOATS).blend(weight, visible);
    kept.intoMemorySegment(ALL, s + 4L * at, ORDER);
    for (VectorShuffle<Float> turn : TURNS) {
      kept = kept.add(kept.rearrange(turn));
    }
    return kept.lane(0);
  }

  /** Small arguments by an odd polynomial, large ones by {@code 1 - 2 / (exp(2y) + 1)}. */
  static void softcap(long s, int from, int to, float cap) {
    float inverse = 1 / cap;
    for (int i = from - from % LANES; i < to; i += LANES) {
      FloatVector argument =
          FloatVector.fromMemorySegment(FLOATS, ALL, s + 4L * i, ORDER).mul(inverse);
      FloatVector magnitude = argument.abs();
      FloatVector z = magnitude.mul(magnitude);
      FloatVector t = FloatVector.broadcast(FLOATS, T5);
      t = t.fma(z, FloatVector.broadcast(FLOATS, T4));
      t = t.fma(z, FloatVector.broadcast(FLOATS, T3));
      t = t.fma(z, FloatVector.broadcast(FLOATS, T2));
      t = t.fma(z, FloatVector.broadcast(FLOATS, T1));
      t = t.fma(z, FloatVector.broadcast(FLOATS, T0));
      FloatVector small = t.mul(z).fma(magnitude, magnitude);
      FloatVector y =
          magnitude
              .blend(SATURATED, magnitude.compare(VectorOperators.GT, SATURATED))
              .mul(2 * LOG2_E);
      FloatVector rounded = y.add(ROUND);
      FloatVector f = y.sub(rounded.sub(ROUND));
      FloatVector p = FloatVector.broadcast(FLOATS, P6);
      p = p.fma(f, FloatVector.broadcast(FLOATS, P5));
      p = p.fma(f, FloatVector.broadcast(FLOATS, P4));
      p = p.fma(f, FloatVector.broadcast(FLOATS, P3));
      p = p.fma(f, FloatVector.broadcast(FLOATS, P2));
      p = p.fma(f, FloatVector.broadcast(FLOATS, P1));
      p = p.fma(f, FloatVector.broadcast(FLOATS, 1f));
      FloatVector exponential =
          p.reinterpretAsInts()
              .add(rounded.reinterpretAsInts().lanewise(VectorOperators.LSHL, MANTISSA_BITS))
              .reinterpretAsFloats();
      FloatVector large =
          FloatVector.broadcast(FLOATS, 1f)
              .sub(FloatVector.broadcast(FLOATS, 2f).div(exponential.add(1f)));
      FloatVector tanh = small.blend(large, magnitude.compare(VectorOperators.GT, SMALL));
      tanh.blend(tanh.neg(), argument.compare(VectorOperators.LT, 0f))
          .mul(cap)
          .intoMemorySegment(ALL, s + 4L * i, ORDER);
    }
  }

  static void alibi(long s, int from, int to, float slope, int offset) {
    for (int i = from - from % LANES; i < to; i += LANES) {
      FloatVector distance = LANE_NUMBERS.add((float) (i + offset));
      distance
          .mul(slope)
          .add(FloatVector.fromMemorySegment(FLOATS, ALL, s + 4L * i, ORDER))
          .intoMemorySegment(ALL, s + 4L * i, ORDER);
    }
  }

  static void scale(long o, int count, float factor) {
    for (int i = 0; i < count; i += LANES) {
      FloatVector.fromMemorySegment(FLOATS, ALL, o + 4L * i, ORDER)
          .mul(factor)
          .intoMemorySegment(ALL, o + 4L * i, ORDER);
    }
  }
}
