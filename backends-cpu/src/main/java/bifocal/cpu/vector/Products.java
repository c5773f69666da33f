package bifocal.cpu.vector;

import bifocal.cpu.raw.RawMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * The two matrix products of a tile, register-blocked: some rows times four vectors. Every method
 * stays far below the size at which the JIT compilers give up on it, so each block height is a
 * method of its own, and none calls anything but the Vector API, which alone is inlined however
 * large a method has become.
 */
final class Products {
  static final VectorSpecies<Float> FLOATS = FloatVector.SPECIES_PREFERRED;
  static final int LANES = FLOATS.length();

  /** Byte offsets of the second, third and fourth vector of a row. */
  private static final long STEP1 = 4L * LANES;

  private static final long STEP2 = 2 * STEP1;
  private static final long STEP3 = 3 * STEP1;

  /** Bytes from one dimension of sixteen keys to the next. */
  private static final long KEY_STEP = 64;

  private static final MemorySegment ALL = RawMemory.ALL;
  private static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;
  private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

  private Products() {}

  static FloatVector load(long address) {
    return FloatVector.fromMemorySegment(FLOATS, RawMemory.ALL, address, ByteOrder.LITTLE_ENDIAN);
  }

  static void store(FloatVector vector, long address) {
    vector.intoMemorySegment(RawMemory.ALL, address, ByteOrder.LITTLE_ENDIAN);
  }

  /** Scores of up to five rows and one panel of keys; see the interface. */
  static void scores(
      long q,
      long qStride,
      int rows,
      long k0,
      long k1,
      long k2,
      long k3,
      int headSize,
      long s,
      long sStride) {
    switch (rows) {
      case 1 -> scores1(q, k0, k1, k2, k3, headSize, s);
      case 2 -> scores2(q, qStride, k0, k1, k2, k3, headSize, s, sStride);
      case 3 -> scores3(q, qStride, k0, k1, k2, k3, headSize, s, sStride);
      case 4 -> scores4(q, qStride, k0, k1, k2, k3, headSize, s, sStride);
      default -> scores5(q, qStride, k0, k1, k2, k3, headSize, s, sStride);
    }
  }

  /** Weighted values of up to five rows and four vectors of columns. */
  static void accumulate(
      long o, long oStride, int rows, long p, long pStride, long v, long vStride, int count) {
    switch (rows) {
      case 1 -> accumulate1(o, p, v, vStride, count);
      case 2 -> accumulate2(o, oStride, p, pStride, v, vStride, count);
      case 3 -> accumulate3(o, oStride, p, pStride, v, vStride, count);
      case 4 -> accumulate4(o, oStride, p, pStride, v, vStride, count);
      default -> accumulate5(o, oStride, p, pStride, v, vStride, count);
    }
  }

  /** Weighted values of up to five rows and one vector of columns. */
  static void narrow(
      long o, long oStride, int rows, long p, long pStride, long v, long vStride, int count) {
    if (rows == 5) {
      narrow5(o, oStride, p, pStride, v, vStride, count);
      return;
    }
    for (int r = 0; r < rows; r++) {
      narrow1(o + r * oStride, p + r * pStride, v, vStride, count);
    }
  }

  private static void scores5(
      long q,
      long qStride,
      long k0,
      long k1,
      long k2,
      long k3,
      int headSize,
      long s,
      long sStride) {
    long q1 = q + qStride;
    long q2 = q + 2 * qStride;
    long q3 = q + 3 * qStride;
    long q4 = q + 4 * qStride;
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
    FloatVector s40 = FloatVector.zero(FLOATS);
    FloatVector s41 = FloatVector.zero(FLOATS);
    FloatVector s42 = FloatVector.zero(FLOATS);
    FloatVector s43 = FloatVector.zero(FLOATS);
    for (int d = 0; d < headSize; d++) {
      FloatVector key0 = FloatVector.fromMemorySegment(FLOATS, ALL, k0 + KEY_STEP * d, ORDER);
      FloatVector key1 = FloatVector.fromMemorySegment(FLOATS, ALL, k1 + KEY_STEP * d, ORDER);
      FloatVector key2 = FloatVector.fromMemorySegment(FLOATS, ALL, k2 + KEY_STEP * d, ORDER);
      FloatVector key3 = FloatVector.fromMemorySegment(FLOATS, ALL, k3 + KEY_STEP * d, ORDER);
      FloatVector query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q + 4L * d));
      s00 = query.fma(key0, s00);
      s01 = query.fma(key1, s01);
      s02 = query.fma(key2, s02);
      s03 = query.fma(key3, s03);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q1 + 4L * d));
      s10 = query.fma(key0, s10);
      s11 = query.fma(key1, s11);
      s12 = query.fma(key2, s12);
      s13 = query.fma(key3, s13);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q2 + 4L * d));
      s20 = query.fma(key0, s20);
      s21 = query.fma(key1, s21);
      s22 = query.fma(key2, s22);
      s23 = query.fma(key3, s23);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q3 + 4L * d));
      s30 = query.fma(key0, s30);
      s31 = query.fma(key1, s31);
      s32 = query.fma(key2, s32);
      s33 = query.fma(key3, s33);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q4 + 4L * d));
      s40 = query.fma(key0, s40);
      s41 = query.fma(key1, s41);
      s42 = query.fma(key2, s42);
      s43 = query.fma(key3, s43);
    }
    long s1 = s + sStride;
    long s2 = s + 2 * sStride;
    long s3 = s + 3 * sStride;
    long s4 = s + 4 * sStride;
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
    s40.intoMemorySegment(ALL, s4, ORDER);
    s41.intoMemorySegment(ALL, s4 + STEP1, ORDER);
    s42.intoMemorySegment(ALL, s4 + STEP2, ORDER);
    s43.intoMemorySegment(ALL, s4 + STEP3, ORDER);
  }

  private static void scores4(
      long q,
      long qStride,
      long k0,
      long k1,
      long k2,
      long k3,
      int headSize,
      long s,
      long sStride) {
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
    for (int d = 0; d < headSize; d++) {
      FloatVector key0 = FloatVector.fromMemorySegment(FLOATS, ALL, k0 + KEY_STEP * d, ORDER);
      FloatVector key1 = FloatVector.fromMemorySegment(FLOATS, ALL, k1 + KEY_STEP * d, ORDER);
      FloatVector key2 = FloatVector.fromMemorySegment(FLOATS, ALL, k2 + KEY_STEP * d, ORDER);
      FloatVector key3 = FloatVector.fromMemorySegment(FLOATS, ALL, k3 + KEY_STEP * d, ORDER);
      FloatVector query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q + 4L * d));
      s00 = query.fma(key0, s00);
      s01 = query.fma(key1, s01);
      s02 = query.fma(key2, s02);
      s03 = query.fma(key3, s03);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q1 + 4L * d));
      s10 = query.fma(key0, s10);
      s11 = query.fma(key1, s11);
      s12 = query.fma(key2, s12);
      s13 = query.fma(key3, s13);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q2 + 4L * d));
      s20 = query.fma(key0, s20);
      s21 = query.fma(key1, s21);
      s22 = query.fma(key2, s22);
      s23 = query.fma(key3, s23);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q3 + 4L * d));
      s30 = query.fma(key0, s30);
      s31 = query.fma(key1, s31);
      s32 = query.fma(key2, s32);
      s33 = query.fma(key3, s33);
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

  private static void scores3(
      long q,
      long qStride,
      long k0,
      long k1,
      long k2,
      long k3,
      int headSize,
      long s,
      long sStride) {
    long q1 = q + qStride;
    long q2 = q + 2 * qStride;
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
    for (int d = 0; d < headSize; d++) {
      FloatVector key0 = FloatVector.fromMemorySegment(FLOATS, ALL, k0 + KEY_STEP * d, ORDER);
      FloatVector key1 = FloatVector.fromMemorySegment(FLOATS, ALL, k1 + KEY_STEP * d, ORDER);
      FloatVector key2 = FloatVector.fromMemorySegment(FLOATS, ALL, k2 + KEY_STEP * d, ORDER);
      FloatVector key3 = FloatVector.fromMemorySegment(FLOATS, ALL, k3 + KEY_STEP * d, ORDER);
      FloatVector query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q + 4L * d));
      s00 = query.fma(key0, s00);
      s01 = query.fma(key1, s01);
      s02 = query.fma(key2, s02);
      s03 = query.fma(key3, s03);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q1 + 4L * d));
      s10 = query.fma(key0, s10);
      s11 = query.fma(key1, s11);
      s12 = query.fma(key2, s12);
      s13 = query.fma(key3, s13);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q2 + 4L * d));
      s20 = query.fma(key0, s20);
      s21 = query.fma(key1, s21);
      s22 = query.fma(key2, s22);
      s23 = query.fma(key3, s23);
    }
    long s1 = s + sStride;
    long s2 = s + 2 * sStride;
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
  }

  private static void scores2(
      long q,
      long qStride,
      long k0,
      long k1,
      long k2,
      long k3,
      int headSize,
      long s,
      long sStride) {
    long q1 = q + qStride;
    FloatVector s00 = FloatVector.zero(FLOATS);
    FloatVector s01 = FloatVector.zero(FLOATS);
    FloatVector s02 = FloatVector.zero(FLOATS);
    FloatVector s03 = FloatVector.zero(FLOATS);
    FloatVector s10 = FloatVector.zero(FLOATS);
    FloatVector s11 = FloatVector.zero(FLOATS);
    FloatVector s12 = FloatVector.zero(FLOATS);
    FloatVector s13 = FloatVector.zero(FLOATS);
    for (int d = 0; d < headSize; d++) {
      FloatVector key0 = FloatVector.fromMemorySegment(FLOATS, ALL, k0 + KEY_STEP * d, ORDER);
      FloatVector key1 = FloatVector.fromMemorySegment(FLOATS, ALL, k1 + KEY_STEP * d, ORDER);
      FloatVector key2 = FloatVector.fromMemorySegment(FLOATS, ALL, k2 + KEY_STEP * d, ORDER);
      FloatVector key3 = FloatVector.fromMemorySegment(FLOATS, ALL, k3 + KEY_STEP * d, ORDER);
      FloatVector query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q + 4L * d));
      s00 = query.fma(key0, s00);
      s01 = query.fma(key1, s01);
      s02 = query.fma(key2, s02);
      s03 = query.fma(key3, s03);
      query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q1 + 4L * d));
      s10 = query.fma(key0, s10);
      s11 = query.fma(key1, s11);
      s12 = query.fma(key2, s12);
      s13 = query.fma(key3, s13);
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

  private static void scores1(long q, long k0, long k1, long k2, long k3, int headSize, long s) {
    FloatVector s00 = FloatVector.zero(FLOATS);
    FloatVector s01 = FloatVector.zero(FLOATS);
    FloatVector s02 = FloatVector.zero(FLOATS);
    FloatVector s03 = FloatVector.zero(FLOATS);
    for (int d = 0; d < headSize; d++) {
      FloatVector key0 = FloatVector.fromMemorySegment(FLOATS, ALL, k0 + KEY_STEP * d, ORDER);
      FloatVector key1 = FloatVector.fromMemorySegment(FLOATS, ALL, k1 + KEY_STEP * d, ORDER);
      FloatVector key2 = FloatVector.fromMemorySegment(FLOATS, ALL, k2 + KEY_STEP * d, ORDER);
      FloatVector key3 = FloatVector.fromMemorySegment(FLOATS, ALL, k3 + KEY_STEP * d, ORDER);
      FloatVector query = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, q + 4L * d));
      s00 = query.fma(key0, s00);
      s01 = query.fma(key1, s01);
      s02 = query.fma(key2, s02);
      s03 = query.fma(key3, s03);
    }
    s00.intoMemorySegment(ALL, s, ORDER);
    s01.intoMemorySegment(ALL, s + STEP1, ORDER);
    s02.intoMemorySegment(ALL, s + STEP2, ORDER);
    s03.intoMemorySegment(ALL, s + STEP3, ORDER);
  }

  private static void accumulate5(
      long o, long oStride, long p, long pStride, long v, long vStride, int count) {
    long o1 = o + oStride;
    long o2 = o + 2 * oStride;
    long o3 = o + 3 * oStride;
    long o4 = o + 4 * oStride;
    long p1 = p + pStride;
    long p2 = p + 2 * pStride;
    long p3 = p + 3 * pStride;
    long p4 = p + 4 * pStride;
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
    FloatVector o40 = FloatVector.fromMemorySegment(FLOATS, ALL, o4, ORDER);
    FloatVector o41 = FloatVector.fromMemorySegment(FLOATS, ALL, o4 + STEP1, ORDER);
    FloatVector o42 = FloatVector.fromMemorySegment(FLOATS, ALL, o4 + STEP2, ORDER);
    FloatVector o43 = FloatVector.fromMemorySegment(FLOATS, ALL, o4 + STEP3, ORDER);
    for (int t = 0; t < count; t++) {
      long value = v + t * vStride;
      FloatVector value0 = FloatVector.fromMemorySegment(FLOATS, ALL, value, ORDER);
      FloatVector value1 = FloatVector.fromMemorySegment(FLOATS, ALL, value + STEP1, ORDER);
      FloatVector value2 = FloatVector.fromMemorySegment(FLOATS, ALL, value + STEP2, ORDER);
      FloatVector value3 = FloatVector.fromMemorySegment(FLOATS, ALL, value + STEP3, ORDER);
      FloatVector weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 4L * t));
      o00 = weight.fma(value0, o00);
      o01 = weight.fma(value1, o01);
      o02 = weight.fma(value2, o02);
      o03 = weight.fma(value3, o03);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p1 + 4L * t));
      o10 = weight.fma(value0, o10);
      o11 = weight.fma(value1, o11);
      o12 = weight.fma(value2, o12);
      o13 = weight.fma(value3, o13);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p2 + 4L * t));
      o20 = weight.fma(value0, o20);
      o21 = weight.fma(value1, o21);
      o22 = weight.fma(value2, o22);
      o23 = weight.fma(value3, o23);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p3 + 4L * t));
      o30 = weight.fma(value0, o30);
      o31 = weight.fma(value1, o31);
      o32 = weight.fma(value2, o32);
      o33 = weight.fma(value3, o33);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p4 + 4L * t));
      o40 = weight.fma(value0, o40);
      o41 = weight.fma(value1, o41);
      o42 = weight.fma(value2, o42);
      o43 = weight.fma(value3, o43);
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
    o40.intoMemorySegment(ALL, o4, ORDER);
    o41.intoMemorySegment(ALL, o4 + STEP1, ORDER);
    o42.intoMemorySegment(ALL, o4 + STEP2, ORDER);
    o43.intoMemorySegment(ALL, o4 + STEP3, ORDER);
  }

  private static void accumulate4(
      long o, long oStride, long p, long pStride, long v, long vStride, int count) {
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
    for (int t = 0; t < count; t++) {
      long value = v + t * vStride;
      FloatVector value0 = FloatVector.fromMemorySegment(FLOATS, ALL, value, ORDER);
      FloatVector value1 = FloatVector.fromMemorySegment(FLOATS, ALL, value + STEP1, ORDER);
      FloatVector value2 = FloatVector.fromMemorySegment(FLOATS, ALL, value + STEP2, ORDER);
      FloatVector value3 = FloatVector.fromMemorySegment(FLOATS, ALL, value + STEP3, ORDER);
      FloatVector weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 4L * t));
      o00 = weight.fma(value0, o00);
      o01 = weight.fma(value1, o01);
      o02 = weight.fma(value2, o02);
      o03 = weight.fma(value3, o03);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p1 + 4L * t));
      o10 = weight.fma(value0, o10);
      o11 = weight.fma(value1, o11);
      o12 = weight.fma(value2, o12);
      o13 = weight.fma(value3, o13);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p2 + 4L * t));
      o20 = weight.fma(value0, o20);
      o21 = weight.fma(value1, o21);
      o22 = weight.fma(value2, o22);
      o23 = weight.fma(value3, o23);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p3 + 4L * t));
      o30 = weight.fma(value0, o30);
      o31 = weight.fma(value1, o31);
      o32 = weight.fma(value2, o32);
      o33 = weight.fma(value3, o33);
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

  private static void accumulate3(
      long o, long oStride, long p, long pStride, long v, long vStride, int count) {
    long o1 = o + oStride;
    long o2 = o + 2 * oStride;
    long p1 = p + pStride;
    long p2 = p + 2 * pStride;
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
    for (int t = 0; t < count; t++) {
      long value = v + t * vStride;
      FloatVector value0 = FloatVector.fromMemorySegment(FLOATS, ALL, value, ORDER);
      FloatVector value1 = FloatVector.fromMemorySegment(FLOATS, ALL, value + STEP1, ORDER);
      FloatVector value2 = FloatVector.fromMemorySegment(FLOATS, ALL, value + STEP2, ORDER);
      FloatVector value3 = FloatVector.fromMemorySegment(FLOATS, ALL, value + STEP3, ORDER);
      FloatVector weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 4L * t));
      o00 = weight.fma(value0, o00);
      o01 = weight.fma(value1, o01);
      o02 = weight.fma(value2, o02);
      o03 = weight.fma(value3, o03);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p1 + 4L * t));
      o10 = weight.fma(value0, o10);
      o11 = weight.fma(value1, o11);
      o12 = weight.fma(value2, o12);
      o13 = weight.fma(value3, o13);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p2 + 4L * t));
      o20 = weight.fma(value0, o20);
      o21 = weight.fma(value1, o21);
      o22 = weight.fma(value2, o22);
      o23 = weight.fma(value3, o23);
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
  }

  private static void accumulate2(
      long o, long oStride, long p, long pStride, long v, long vStride, int count) {
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
    for (int t = 0; t < count; t++) {
      long value = v + t * vStride;
      FloatVector value0 = FloatVector.fromMemorySegment(FLOATS, ALL, value, ORDER);
      FloatVector value1 = FloatVector.fromMemorySegment(FLOATS, ALL, value + STEP1, ORDER);
      FloatVector value2 = FloatVector.fromMemorySegment(FLOATS, ALL, value + STEP2, ORDER);
      FloatVector value3 = FloatVector.fromMemorySegment(FLOATS, ALL, value + STEP3, ORDER);
      FloatVector weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 4L * t));
      o00 = weight.fma(value0, o00);
      o01 = weight.fma(value1, o01);
      o02 = weight.fma(value2, o02);
      o03 = weight.fma(value3, o03);
      weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p1 + 4L * t));
      o10 = weight.fma(value0, o10);
      o11 = weight.fma(value1, o11);
      o12 = weight.fma(value2, o12);
      o13 = weight.fma(value3, o13);
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

  private static void accumulate1(long o, long p, long v, long vStride, int count) {
    FloatVector o00 = FloatVector.fromMemorySegment(FLOATS, ALL, o, ORDER);
    FloatVector o01 = FloatVector.fromMemorySegment(FLOATS, ALL, o + STEP1, ORDER);
    FloatVector o02 = FloatVector.fromMemorySegment(FLOATS, ALL, o + STEP2, ORDER);
    FloatVector o03 = FloatVector.fromMemorySegment(FLOATS, ALL, o + STEP3, ORDER);
    for (int t = 0; t < count; t++) {
      long value = v + t * vStride;
      FloatVector value0 = FloatVector.fromMemorySegment(FLOATS, ALL, value, ORDER);
      FloatVector value1 = FloatVector.fromMemorySegment(FLOATS, ALL, value + STEP1, ORDER);
      FloatVector value2 = FloatVector.fromMemorySegment(FLOATS, ALL, value + STEP2, ORDER);
      FloatVector value3 = FloatVector.fromMemorySegment(FLOATS, ALL, value + STEP3, ORDER);
      FloatVector weight = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 4L * t));
      o00 = weight.fma(value0, o00);
      o01 = weight.fma(value1, o01);
      o02 = weight.fma(value2, o02);
      o03 = weight.fma(value3, o03);
    }
    o00.intoMemorySegment(ALL, o, ORDER);
    o01.intoMemorySegment(ALL, o + STEP1, ORDER);
    o02.intoMemorySegment(ALL, o + STEP2, ORDER);
    o03.intoMemorySegment(ALL, o + STEP3, ORDER);
  }

  private static void narrow5(
      long o, long oStride, long p, long pStride, long v, long vStride, int count) {
    FloatVector o0 = FloatVector.fromMemorySegment(FLOATS, ALL, o, ORDER);
    FloatVector o1 = FloatVector.fromMemorySegment(FLOATS, ALL, o + oStride, ORDER);
    FloatVector o2 = FloatVector.fromMemorySegment(FLOATS, ALL, o + 2 * oStride, ORDER);
    FloatVector o3 = FloatVector.fromMemorySegment(FLOATS, ALL, o + 3 * oStride, ORDER);
    FloatVector o4 = FloatVector.fromMemorySegment(FLOATS, ALL, o + 4 * oStride, ORDER);
    for (int t = 0; t < count; t++) {
      FloatVector value = FloatVector.fromMemorySegment(FLOATS, ALL, v + t * vStride, ORDER);
      o0 = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 4L * t)).fma(value, o0);
      o1 = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + pStride + 4L * t)).fma(value, o1);
      o2 = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 2 * pStride + 4L * t)).fma(value, o2);
      o3 = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 3 * pStride + 4L * t)).fma(value, o3);
      o4 = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 4 * pStride + 4L * t)).fma(value, o4);
    }
    o0.intoMemorySegment(ALL, o, ORDER);
    o1.intoMemorySegment(ALL, o + oStride, ORDER);
    o2.intoMemorySegment(ALL, o + 2 * oStride, ORDER);
    o3.intoMemorySegment(ALL, o + 3 * oStride, ORDER);
    o4.intoMemorySegment(ALL, o + 4 * oStride, ORDER);
  }

  private static void narrow1(long o, long p, long v, long vStride, int count) {
    FloatVector o0 = FloatVector.fromMemorySegment(FLOATS, ALL, o, ORDER);
    for (int t = 0; t < count; t++) {
      FloatVector value = FloatVector.fromMemorySegment(FLOATS, ALL, v + t * vStride, ORDER);
      o0 = FloatVector.broadcast(FLOATS, ALL.get(FLOAT, p + 4L * t)).fma(value, o0);
    }
    o0.intoMemorySegment(ALL, o, ORDER);
  }
}
