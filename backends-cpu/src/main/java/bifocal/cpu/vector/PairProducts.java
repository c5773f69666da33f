package bifocal.cpu.vector;

import static bifocal.cpu.vector.Products.FLOATS;
import static bifocal.cpu.vector.Products.LANES;

import bifocal.cpu.raw.RawMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/**
 * The matrix products of few rows over bf16 pairs as they lie in the cache: a pair is a word, whose
 * halves are two fp32 numbers without their lower bits. Few rows do not pay for unpacking a tile
 * first. The order of additions is that of {@link Products}, so both give the same bits.
 */
final class PairProducts {
  /** Rows that are few. */
  static final int MOST_ROWS = 4;

  private static final VectorSpecies<Integer> INTS = IntVector.SPECIES_PREFERRED;
  private static final int HIGH = 0xffff0000;
  private static final long STEP1 = 4L * LANES;
  private static final long STEP2 = 2 * STEP1;
  private static final long STEP3 = 3 * STEP1;

  /** Bytes from one pair of dimensions of sixteen keys to the next. */
  private static final long KEY_STEP = 64;

  private static final MemorySegment ALL = RawMemory.ALL;
  private static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;
  private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

  private PairProducts() {}

  /** Scores of up to four rows and one panel of packed keys. */
  static void scores(
      long q,
      long qStride,
      int rows,
      long k0,
      long k1,
      long k2,
      long k3,
      int pairs,
      long s,
      long sStride) {
    switch (rows) {
      case 4 -> scores4(q, qStride, k0, k1, k2, k3, pairs, s, sStride);
      case 3 -> {
        scores2(q, qStride, k0, k1, k2, k3, pairs, s, sStride);
        scores1(q + 2 * qStride, k0, k1, k2, k3, pairs, s + 2 * sStride);
      }
      case 2 -> scores2(q, qStride, k0, k1, k2, k3, pairs, s, sStride);
      default -> scores1(q, k0, k1, k2, k3, pairs, s);
    }
  }

  /** Weighted values of up to four rows and four vectors of columns. */
  static void accumulate(
      long o, long oStride, int rows, long p, long pStride, long v, long vStride, int pairs) {
    switch (rows) {
      case 4 -> accumulate4(o, oStride, p, pStride, v, vStride, pairs);
      case 3 -> {
        accumulate2(o, oStride, p, pStride, v, vStride, pairs);
        accumulate1(o + 2 * oStride, p + 2 * pStride, v, vStride, pairs);
      }
      case 2 -> accumulate2(o, oStride, p, pStride, v, vStride, pairs);
      default -> accumulate1(o, p, v, vStride, pairs);
    }
  }

  /** Weighted values of up to four rows and one vector of columns. */
  static void narrow(
      long o, long oStride, int rows, long p, long pStride, long v, long vStride, int pairs) {
    if (rows == MOST_ROWS) {
      narrow4(o, oStride, p, pStride, v, vStride, pairs);
      return;
    }
    for (int r = 0; r < rows; r++) {
      narrow1(o + r * oStride, p + r * pStride, v, vStride, pairs);
    }
  }

  private static void scores4(
      long q, long qStride, long k0, long k1, long k2, long k3, int pairs, long s, long sStride) {
    long q1 = q + qStride;
    long q2 = q + 2 * qStride;
    long q3 = q + 3 * qStride;
    FloatVector s00 = FloatVector.zero(FLOATS);
    FloatVector s01 = FloatVector.zero(FLOATS);
    FloatVector s02 = FloatVector.zero(FLOATS);
    FloatVector s03 = FloatVector.zero(FLOATS);
    FloatVector s10 = FloatVector.zero(FLOATS);
    FloatVector s11 = FloatVector.zero(FLOATS);
    FloatVector s12 = FloatVector.zero(FLOATS);
    FloatVector s13 = FloatVector.zero(FLOATS);
    FloatVector s20 = FloatVector.zero(FLOATS);
    FloatVector s21 = FloatVector.zero(FLOATS);
    FloatVector s22 = FloatVector.zero(FLOATS);
    FloatVector s23 = FloatVector.zero(FLOATS);
    FloatVector s30 = FloatVector.zero(FLOATS);
    FloatVector s31 = FloatVector.zero(FLOATS);
    FloatVector s32 = FloatVector.zero(FLOATS);
    FloatVector s33 = FloatVector.zero(FLOATS);
    for (int g = 0; g < pairs; g++) {
      IntVector pair0 = IntVector.fromMemorySegment(INTS, ALL, k0 + KEY_STEP * g, ORDER);
      FloatVector first0 = pair0.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second0 = pair0.and(HIGH).reinterpretAsFloats();
      IntVector pair1 = IntVector.fromMemorySegment(INTS, ALL, k1 + KEY_STEP * g, ORDER);
      FloatVector first1 = pair1.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second1 = pair1.and(HIGH).reinterpretAsFloats();
      IntVector pair2 = IntVector.fromMemorySegment(INTS, ALL, k2 + KEY_STEP * g, ORDER);
      FloatVector first2 = pair2.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second2 = pair2.and(HIGH).reinterpretAsFloats();
      IntVector pair3 = IntVector.fromMemorySegment(INTS, ALL, k3 + KEY_STEP * g, ORDER);
      FloatVector first3 = pair3.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second3 = pair3.and(HIGH).reinterpretAsFloats();
      FloatVector query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q + 8L * g));
      s00 = query.fma(first0, s00);
      s01 = query.fma(first1, s01);
      s02 = query.fma(first2, s02);
      s03 = query.fma(first3, s03);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q1 + 8L * g));
      s10 = query.fma(first0, s10);
      s11 = query.fma(first1, s11);
      s12 = query.fma(first2, s12);
      s13 = query.fma(first3, s13);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q2 + 8L * g));
      s20 = query.fma(first0, s20);
      s21 = query.fma(first1, s21);
      s22 = query.fma(first2, s22);
      s23 = query.fma(first3, s23);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q3 + 8L * g));
      s30 = query.fma(first0, s30);
      s31 = query.fma(first1, s31);
      s32 = query.fma(first2, s32);
      s33 = query.fma(first3, s33);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q + 8L * g + 4));
      s00 = query.fma(second0, s00);
      s01 = query.fma(second1, s01);
      s02 = query.fma(second2, s02);
      s03 = query.fma(second3, s03);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q1 + 8L * g + 4));
      s10 = query.fma(second0, s10);
      s11 = query.fma(second1, s11);
      s12 = query.fma(second2, s12);
      s13 = query.fma(second3, s13);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q2 + 8L * g + 4));
      s20 = query.fma(second0, s20);
      s21 = query.fma(second1, s21);
      s22 = query.fma(second2, s22);
      s23 = query.fma(second3, s23);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q3 + 8L * g + 4));
      s30 = query.fma(second0, s30);
      s31 = query.fma(second1, s31);
      s32 = query.fma(second2, s32);
      s33 = query.fma(second3, s33);
    }
    long s1 = s + sStride;
    long s2 = s + 2 * sStride;
    long s3 = s + 3 * sStride;
    s00.intoMemorySegment(ALL, s, ORDER);
    s01.intoMemorySegment(ALL, s + STEP1, ORDER);
    s02.intoMemorySegment(ALL, s + STEP2, ORDER);
    s03.intoMemorySegment(ALL, s + STEP3, ORDER);
    s10.intoMemorySegment(ALL, s1, ORDER);
    s11.intoMemorySegment(ALL, s1 + STEP1, ORDER);
    s12.intoMemorySegment(ALL, s1 + STEP2, ORDER);
    s13.intoMemorySegment(ALL, s1 + STEP3, ORDER);
    s20.intoMemorySegment(ALL, s2, ORDER);
    s21.intoMemorySegment(ALL, s2 + STEP1, ORDER);
    s22.intoMemorySegment(ALL, s2 + STEP2, ORDER);
    s23.intoMemorySegment(ALL, s2 + STEP3, ORDER);
    s30.intoMemorySegment(ALL, s3, ORDER);
    s31.intoMemorySegment(ALL, s3 + STEP1, ORDER);
    s32.intoMemorySegment(ALL, s3 + STEP2, ORDER);
    s33.intoMemorySegment(ALL, s3 + STEP3, ORDER);
  }

  private static void scores2(
      long q, long qStride, long k0, long k1, long k2, long k3, int pairs, long s, long sStride) {
    long q1 = q + qStride;
    FloatVector s00 = FloatVector.zero(FLOATS);
    FloatVector s01 = FloatVector.zero(FLOATS);
    FloatVector s02 = FloatVector.zero(FLOATS);
    FloatVector s03 = FloatVector.zero(FLOATS);
    FloatVector s10 = FloatVector.zero(FLOATS);
    FloatVector s11 = FloatVector.zero(FLOATS);
    FloatVector s12 = FloatVector.zero(FLOATS);
    FloatVector s13 = FloatVector.zero(FLOATS);
    for (int g = 0; g < pairs; g++) {
      IntVector pair0 = IntVector.fromMemorySegment(INTS, ALL, k0 + KEY_STEP * g, ORDER);
      FloatVector first0 = pair0.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second0 = pair0.and(HIGH).reinterpretAsFloats();
      IntVector pair1 = IntVector.fromMemorySegment(INTS, ALL, k1 + KEY_STEP * g, ORDER);
      FloatVector first1 = pair1.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second1 = pair1.and(HIGH).reinterpretAsFloats();
      IntVector pair2 = IntVector.fromMemorySegment(INTS, ALL, k2 + KEY_STEP * g, ORDER);
      FloatVector first2 = pair2.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second2 = pair2.and(HIGH).reinterpretAsFloats();
      IntVector pair3 = IntVector.fromMemorySegment(INTS, ALL, k3 + KEY_STEP * g, ORDER);
      FloatVector first3 = pair3.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second3 = pair3.and(HIGH).reinterpretAsFloats();
      FloatVector query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q + 8L * g));
      s00 = query.fma(first0, s00);
      s01 = query.fma(first1, s01);
      s02 = query.fma(first2, s02);
      s03 = query.fma(first3, s03);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q1 + 8L * g));
      s10 = query.fma(first0, s10);
      s11 = query.fma(first1, s11);
      s12 = query.fma(first2, s12);
      s13 = query.fma(first3, s13);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q + 8L * g + 4));
      s00 = query.fma(second0, s00);
      s01 = query.fma(second1, s01);
      s02 = query.fma(second2, s02);
      s03 = query.fma(second3, s03);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q1 + 8L * g + 4));
      s10 = query.fma(second0, s10);
      s11 = query.fma(second1, s11);
      s12 = query.fma(second2, s12);
      s13 = query.fma(second3, s13);
    }
    long s1 = s + sStride;
    s00.intoMemorySegment(ALL, s, ORDER);
    s01.intoMemorySegment(ALL, s + STEP1, ORDER);
    s02.intoMemorySegment(ALL, s + STEP2, ORDER);
    s03.intoMemorySegment(ALL, s + STEP3, ORDER);
    s10.intoMemorySegment(ALL, s1, ORDER);
    s11.intoMemorySegment(ALL, s1 + STEP1, ORDER);
    s12.intoMemorySegment(ALL, s1 + STEP2, ORDER);
    s13.intoMemorySegment(ALL, s1 + STEP3, ORDER);
  }

  private static void scores1(long q, long k0, long k1, long k2, long k3, int pairs, long s) {
    FloatVector s00 = FloatVector.zero(FLOATS);
    FloatVector s01 = FloatVector.zero(FLOATS);
    FloatVector s02 = FloatVector.zero(FLOATS);
    FloatVector s03 = FloatVector.zero(FLOATS);
    for (int g = 0; g < pairs; g++) {
      IntVector pair0 = IntVector.fromMemorySegment(INTS, ALL, k0 + KEY_STEP * g, ORDER);
      FloatVector first0 = pair0.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second0 = pair0.and(HIGH).reinterpretAsFloats();
      IntVector pair1 = IntVector.fromMemorySegment(INTS, ALL, k1 + KEY_STEP * g, ORDER);
      FloatVector first1 = pair1.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second1 = pair1.and(HIGH).reinterpretAsFloats();
      IntVector pair2 = IntVector.fromMemorySegment(INTS, ALL, k2 + KEY_STEP * g, ORDER);
      FloatVector first2 = pair2.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second2 = pair2.and(HIGH).reinterpretAsFloats();
      IntVector pair3 = IntVector.fromMemorySegment(INTS, ALL, k3 + KEY_STEP * g, ORDER);
      FloatVector first3 = pair3.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second3 = pair3.and(HIGH).reinterpretAsFloats();
      FloatVector query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q + 8L * g));
      s00 = query.fma(first0, s00);
      s01 = query.fma(first1, s01);
      s02 = query.fma(first2, s02);
      s03 = query.fma(first3, s03);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q + 8L * g + 4));
      s00 = query.fma(second0, s00);
      s01 = query.fma(second1, s01);
      s02 = query.fma(second2, s02);
      s03 = query.fma(second3, s03);
    }
    s00.intoMemorySegment(ALL, s, ORDER);
    s01.intoMemorySegment(ALL, s + STEP1, ORDER);
    s02.intoMemorySegment(ALL, s + STEP2, ORDER);
    s03.intoMemorySegment(ALL, s + STEP3, ORDER);
  }

  private static void accumulate4(
      long o, long oStride, long p, long pStride, long v, long vStride, int pairs) {
    long o1 = o + oStride;
    long o2 = o + 2 * oStride;
    long o3 = o + 3 * oStride;
    long p1 = p + pStride;
    long p2 = p + 2 * pStride;
    long p3 = p + 3 * pStride;
    FloatVector o00 = FloatVector.fromMemorySegment(FLOATS, ALL, o, ORDER);
    FloatVector o01 = FloatVector.fromMemorySegment(FLOATS, ALL, o + STEP1, ORDER);
    FloatVector o02 = FloatVector.fromMemorySegment(FLOATS, ALL, o + STEP2, ORDER);
    FloatVector o03 = FloatVector.fromMemorySegment(FLOATS, ALL, o + STEP3, ORDER);
    FloatVector o10 = FloatVector.fromMemorySegment(FLOATS, ALL, o1, ORDER);
    FloatVector o11 = FloatVector.fromMemorySegment(FLOATS, ALL, o1 + STEP1, ORDER);
    FloatVector o12 = FloatVector.fromMemorySegment(FLOATS, ALL, o1 + STEP2, ORDER);
    FloatVector o13 = FloatVector.fromMemorySegment(FLOATS, ALL, o1 + STEP3, ORDER);
    FloatVector o20 = FloatVector.fromMemorySegment(FLOATS, ALL, o2, ORDER);
    FloatVector o21 = FloatVector.fromMemorySegment(FLOATS, ALL, o2 + STEP1, ORDER);
    FloatVector o22 = FloatVector.fromMemorySegment(FLOATS, ALL, o2 + STEP2, ORDER);
    FloatVector o23 = FloatVector.fromMemorySegment(FLOATS, ALL, o2 + STEP3, ORDER);
    FloatVector o30 = FloatVector.fromMemorySegment(FLOATS, ALL, o3, ORDER);
    FloatVector o31 = FloatVector.fromMemorySegment(FLOATS, ALL, o3 + STEP1, ORDER);
    FloatVector o32 = FloatVector.fromMemorySegment(FLOATS, ALL, o3 + STEP2, ORDER);
    FloatVector o33 = FloatVector.fromMemorySegment(FLOATS, ALL, o3 + STEP3, ORDER);
    for (int g = 0; g < pairs; g++) {
      long value = v + g * vStride;
      IntVector pair0 = IntVector.fromMemorySegment(INTS, ALL, value, ORDER);
      FloatVector first0 = pair0.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second0 = pair0.and(HIGH).reinterpretAsFloats();
      IntVector pair1 = IntVector.fromMemorySegment(INTS, ALL, value + STEP1, ORDER);
      FloatVector first1 = pair1.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second1 = pair1.and(HIGH).reinterpretAsFloats();
      IntVector pair2 = IntVector.fromMemorySegment(INTS, ALL, value + STEP2, ORDER);
      FloatVector first2 = pair2.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second2 = pair2.and(HIGH).reinterpretAsFloats();
      IntVector pair3 = IntVector.fromMemorySegment(INTS, ALL, value + STEP3, ORDER);
      FloatVector first3 = pair3.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second3 = pair3.and(HIGH).reinterpretAsFloats();
      FloatVector weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 8L * g));
      o00 = weight.fma(first0, o00);
      o01 = weight.fma(first1, o01);
      o02 = weight.fma(first2, o02);
      o03 = weight.fma(first3, o03);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p1 + 8L * g));
      o10 = weight.fma(first0, o10);
      o11 = weight.fma(first1, o11);
      o12 = weight.fma(first2, o12);
      o13 = weight.fma(first3, o13);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p2 + 8L * g));
      o20 = weight.fma(first0, o20);
      o21 = weight.fma(first1, o21);
      o22 = weight.fma(first2, o22);
      o23 = weight.fma(first3, o23);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p3 + 8L * g));
      o30 = weight.fma(first0, o30);
      o31 = weight.fma(first1, o31);
      o32 = weight.fma(first2, o32);
      o33 = weight.fma(first3, o33);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 8L * g + 4));
      o00 = weight.fma(second0, o00);
      o01 = weight.fma(second1, o01);
      o02 = weight.fma(second2, o02);
      o03 = weight.fma(second3, o03);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p1 + 8L * g + 4));
      o10 = weight.fma(second0, o10);
      o11 = weight.fma(second1, o11);
      o12 = weight.fma(second2, o12);
      o13 = weight.fma(second3, o13);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p2 + 8L * g + 4));
      o20 = weight.fma(second0, o20);
      o21 = weight.fma(second1, o21);
      o22 = weight.fma(second2, o22);
      o23 = weight.fma(second3, o23);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p3 + 8L * g + 4));
      o30 = weight.fma(second0, o30);
      o31 = weight.fma(second1, o31);
      o32 = weight.fma(second2, o32);
      o33 = weight.fma(second3, o33);
    }
    o00.intoMemorySegment(ALL, o, ORDER);
    o01.intoMemorySegment(ALL, o + STEP1, ORDER);
    o02.intoMemorySegment(ALL, o + STEP2, ORDER);
    o03.intoMemorySegment(ALL, o + STEP3, ORDER);
    o10.intoMemorySegment(ALL, o1, ORDER);
    o11.intoMemorySegment(ALL, o1 + STEP1, ORDER);
    o12.intoMemorySegment(ALL, o1 + STEP2, ORDER);
    o13.intoMemorySegment(ALL, o1 + STEP3, ORDER);
    o20.intoMemorySegment(ALL, o2, ORDER);
    o21.intoMemorySegment(ALL, o2 + STEP1, ORDER);
    o22.intoMemorySegment(ALL, o2 + STEP2, ORDER);
    o23.intoMemorySegment(ALL, o2 + STEP3, ORDER);
    o30.intoMemorySegment(ALL, o3, ORDER);
    o31.intoMemorySegment(ALL, o3 + STEP1, ORDER);
    o32.intoMemorySegment(ALL, o3 + STEP2, ORDER);
    o33.intoMemorySegment(ALL, o3 + STEP3, ORDER);
  }

  private static void accumulate2(
      long o, long oStride, long p, long pStride, long v, long vStride, int pairs) {
    long o1 = o + oStride;
    long p1 = p + pStride;
    FloatVector o00 = FloatVector.fromMemorySegment(FLOATS, ALL, o, ORDER);
    FloatVector o01 = FloatVector.fromMemorySegment(FLOATS, ALL, o + STEP1, ORDER);
    FloatVector o02 = FloatVector.fromMemorySegment(FLOATS, ALL, o + STEP2, ORDER);
    FloatVector o03 = FloatVector.fromMemorySegment(FLOATS, ALL, o + STEP3, ORDER);
    FloatVector o10 = FloatVector.fromMemorySegment(FLOATS, ALL, o1, ORDER);
    FloatVector o11 = FloatVector.fromMemorySegment(FLOATS, ALL, o1 + STEP1, ORDER);
    FloatVector o12 = FloatVector.fromMemorySegment(FLOATS, ALL, o1 + STEP2, ORDER);
    FloatVector o13 = FloatVector.fromMemorySegment(FLOATS, ALL, o1 + STEP3, ORDER);
    for (int g = 0; g < pairs; g++) {
      long value = v + g * vStride;
      IntVector pair0 = IntVector.fromMemorySegment(INTS, ALL, value, ORDER);
      FloatVector first0 = pair0.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second0 = pair0.and(HIGH).reinterpretAsFloats();
      IntVector pair1 = IntVector.fromMemorySegment(INTS, ALL, value + STEP1, ORDER);
      FloatVector first1 = pair1.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second1 = pair1.and(HIGH).reinterpretAsFloats();
      IntVector pair2 = IntVector.fromMemorySegment(INTS, ALL, value + STEP2, ORDER);
      FloatVector first2 = pair2.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second2 = pair2.and(HIGH).reinterpretAsFloats();
      IntVector pair3 = IntVector.fromMemorySegment(INTS, ALL, value + STEP3, ORDER);
      FloatVector first3 = pair3.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second3 = pair3.and(HIGH).reinterpretAsFloats();
      FloatVector weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 8L * g));
      o00 = weight.fma(first0, o00);
      o01 = weight.fma(first1, o01);
      o02 = weight.fma(first2, o02);
      o03 = weight.fma(first3, o03);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p1 + 8L * g));
      o10 = weight.fma(first0, o10);
      o11 = weight.fma(first1, o11);
      o12 = weight.fma(first2, o12);
      o13 = weight.fma(first3, o13);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 8L * g + 4));
      o00 = weight.fma(second0, o00);
      o01 = weight.fma(second1, o01);
      o02 = weight.fma(second2, o02);
      o03 = weight.fma(second3, o03);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p1 + 8L * g + 4));
      o10 = weight.fma(second0, o10);
      o11 = weight.fma(second1, o11);
      o12 = weight.fma(second2, o12);
      o13 = weight.fma(second3, o13);
    }
    o00.intoMemorySegment(ALL, o, ORDER);
    o01.intoMemorySegment(ALL, o + STEP1, ORDER);
    o02.intoMemorySegment(ALL, o + STEP2, ORDER);
    o03.intoMemorySegment(ALL, o + STEP3, ORDER);
    o10.intoMemorySegment(ALL, o1, ORDER);
    o11.intoMemorySegment(ALL, o1 + STEP1, ORDER);
    o12.intoMemorySegment(ALL, o1 + STEP2, ORDER);
    o13.intoMemorySegment(ALL, o1 + STEP3, ORDER);
  }

  private static void accumulate1(long o, long p, long v, long vStride, int pairs) {
    FloatVector o00 = FloatVector.fromMemorySegment(FLOATS, ALL, o, ORDER);
    FloatVector o01 = FloatVector.fromMemorySegment(FLOATS, ALL, o + STEP1, ORDER);
    FloatVector o02 = FloatVector.fromMemorySegment(FLOATS, ALL, o + STEP2, ORDER);
    FloatVector o03 = FloatVector.fromMemorySegment(FLOATS, ALL, o + STEP3, ORDER);
    for (int g = 0; g < pairs; g++) {
      long value = v + g * vStride;
      IntVector pair0 = IntVector.fromMemorySegment(INTS, ALL, value, ORDER);
      FloatVector first0 = pair0.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second0 = pair0.and(HIGH).reinterpretAsFloats();
      IntVector pair1 = IntVector.fromMemorySegment(INTS, ALL, value + STEP1, ORDER);
      FloatVector first1 = pair1.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second1 = pair1.and(HIGH).reinterpretAsFloats();
      IntVector pair2 = IntVector.fromMemorySegment(INTS, ALL, value + STEP2, ORDER);
      FloatVector first2 = pair2.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second2 = pair2.and(HIGH).reinterpretAsFloats();
      IntVector pair3 = IntVector.fromMemorySegment(INTS, ALL, value + STEP3, ORDER);
      FloatVector first3 = pair3.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second3 = pair3.and(HIGH).reinterpretAsFloats();
      FloatVector weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 8L * g));
      o00 = weight.fma(first0, o00);
      o01 = weight.fma(first1, o01);
      o02 = weight.fma(first2, o02);
      o03 = weight.fma(first3, o03);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 8L * g + 4));
      o00 = weight.fma(second0, o00);
      o01 = weight.fma(second1, o01);
      o02 = weight.fma(second2, o02);
      o03 = weight.fma(second3, o03);
    }
    o00.intoMemorySegment(ALL, o, ORDER);
    o01.intoMemorySegment(ALL, o + STEP1, ORDER);
    o02.intoMemorySegment(ALL, o + STEP2, ORDER);
    o03.intoMemorySegment(ALL, o + STEP3, ORDER);
  }

  private static void narrow4(
      long o, long oStride, long p, long pStride, long v, long vStride, int pairs) {
    long o1 = o + oStride;
    long o2 = o + 2 * oStride;
    long o3 = o + 3 * oStride;
    long p1 = p + pStride;
    long p2 = p + 2 * pStride;
    long p3 = p + 3 * pStride;
    FloatVector o00 = FloatVector.fromMemorySegment(FLOATS, ALL, o, ORDER);
    FloatVector o10 = FloatVector.fromMemorySegment(FLOATS, ALL, o1, ORDER);
    FloatVector o20 = FloatVector.fromMemorySegment(FLOATS, ALL, o2, ORDER);
    FloatVector o30 = FloatVector.fromMemorySegment(FLOATS, ALL, o3, ORDER);
    for (int g = 0; g < pairs; g++) {
      long value = v + g * vStride;
      IntVector pair0 = IntVector.fromMemorySegment(INTS, ALL, value, ORDER);
      FloatVector first0 = pair0.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second0 = pair0.and(HIGH).reinterpretAsFloats();
      FloatVector weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 8L * g));
      o00 = weight.fma(first0, o00);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p1 + 8L * g));
      o10 = weight.fma(first0, o10);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p2 + 8L * g));
      o20 = weight.fma(first0, o20);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p3 + 8L * g));
      o30 = weight.fma(first0, o30);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 8L * g + 4));
      o00 = weight.fma(second0, o00);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p1 + 8L * g + 4));
      o10 = weight.fma(second0, o10);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p2 + 8L * g + 4));
      o20 = weight.fma(second0, o20);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p3 + 8L * g + 4));
      o30 = weight.fma(second0, o30);
    }
    o00.intoMemorySegment(ALL, o, ORDER);
    o10.intoMemorySegment(ALL, o1, ORDER);
    o20.intoMemorySegment(ALL, o2, ORDER);
    o30.intoMemorySegment(ALL, o3, ORDER);
  }

  private static void narrow1(long o, long p, long v, long vStride, int pairs) {
    FloatVector o00 = FloatVector.fromMemorySegment(FLOATS, ALL, o, ORDER);
    for (int g = 0; g < pairs; g++) {
      long value = v + g * vStride;
      IntVector pair0 = IntVector.fromMemorySegment(INTS, ALL, value, ORDER);
      FloatVector first0 = pair0.lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
      FloatVector second0 = pair0.and(HIGH).reinterpretAsFloats();
      FloatVector weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 8L * g));
      o00 = weight.fma(first0, o00);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 8L * g + 4));
      o00 = weight.fma(second0, o00);
    }
    o00.intoMemorySegment(ALL, o, ORDER);
  }
}
