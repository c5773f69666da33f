package bifocal.cpu.vector;

import static bifocal.cpu.raw.RawMemory.readFloat;
import static bifocal.cpu.raw.RawMemory.writeFloat;

import bifocal.cpu.cache.KernelType;
import bifocal.cpu.kernel.ScalarTileMath;
import bifocal.cpu.kernel.TileMath;
import bifocal.cpu.raw.RawMemory;

/** The inner loops on the Vector API, with the widest vectors this CPU prefers. */
public final class VectorTileMath implements TileMath {
  private static final int SUB_BLOCK = 16;

  /** With 32 registers five rows of four vectors fit, with 16 three. */
  private static final int ROW_BLOCK = Products.LANES == 8 ? 3 : 5;

  private final TileMath scalar = new ScalarTileMath();

  /**
   * @throws UnsupportedOperationException when the preferred vectors hold other than 4, 8 or 16
   *     floats
   */
  public VectorTileMath() {
    if (Products.LANES < 4 || SUB_BLOCK % Products.LANES != 0) {
      throw new UnsupportedOperationException("vectors of " + Products.LANES + " floats");
    }
  }

  @Override
  public String name() {
    return "vector-" + Products.LANES * Float.SIZE;
  }

  @Override
  public int rowBlock() {
    return ROW_BLOCK;
  }

  @Override
  public int lanes() {
    return Products.LANES;
  }

  @Override
  public void scores(
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
    Products.scores(q, qStride, rows, k0, k1, k2, k3, headSize, s, sStride);
  }

  @Override
  public void softcap(long s, int from, int to, float cap) {
    Exponentials.softcap(s, from, to, cap);
  }

  @Override
  public void alibi(long s, int from, int to, float slope, int offset) {
    Exponentials.alibi(s, from, to, slope, offset);
  }

  @Override
  public float weights(long s, int from, int to, int zeroFrom, int zeroTo, long state) {
    float before = readFloat(state);
    float largest = Exponentials.largest(s, from, to, before);
    float sum = Exponentials.weigh(s, from, to, largest);
    RawMemory.fillFloats(s + 4L * zeroFrom, from - zeroFrom, 0);
    RawMemory.fillFloats(s + 4L * to, zeroTo - to, 0);
    float factor =
        before == Float.NEGATIVE_INFINITY
            ? 1
            : before == largest ? 1 : (float) Math.exp((double) before - largest);
    writeFloat(state, largest);
    writeFloat(state + 4, readFloat(state + 4) * factor + sum);
    return factor;
  }

  @Override
  public void scale(long o, int count, float factor) {
    Exponentials.scale(o, count, factor);
  }

  @Override
  public void accumulate(
      long o,
      long oStride,
      int rows,
      long p,
      long pStride,
      long v,
      long vStride,
      int count,
      int columns) {
    int column = 0;
    for (; column + 4 * Products.LANES <= columns; column += 4 * Products.LANES) {
      Products.accumulate(
          o + 4L * column, oStride, rows, p, pStride, v + 4L * column, vStride, count);
    }
    for (; column < columns; column += Products.LANES) {
      Products.narrow(o + 4L * column, oStride, rows, p, pStride, v + 4L * column, vStride, count);
    }
  }

  @Override
  public boolean readsPairs(KernelType type, int rows) {
    return type == KernelType.BFLOAT16 && rows <= PairProducts.MOST_ROWS;
  }

  @Override
  public void pairScores(
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
    PairProducts.scores(q, qStride, rows, k0, k1, k2, k3, headSize / 2, s, sStride);
  }

  @Override
  public void accumulatePairs(
      long o,
      long oStride,
      int rows,
      long p,
      long pStride,
      long v,
      long vStride,
      int pairs,
      int columns) {
    int column = 0;
    for (; column + 4 * Products.LANES <= columns; column += 4 * Products.LANES) {
      PairProducts.accumulate(
          o + 4L * column, oStride, rows, p, pStride, v + 4L * column, vStride, pairs);
    }
    for (; column < columns; column += Products.LANES) {
      PairProducts.narrow(
          o + 4L * column, oStride, rows, p, pStride, v + 4L * column, vStride, pairs);
    }
  }

  @Override
  public void keys(KernelType type, long packed, long scales, int headSize, long out) {
    Unpacking.pairs(type, packed, headSize / 2, SUB_BLOCK, out, 4L * SUB_BLOCK);
    if (type.perTokenHead()) {
      Unpacking.scaleColumns(out, headSize, scales);
    }
  }

  @Override
  public void values(
      KernelType type,
      long packed,
      long scales,
      int count,
      int headSizeV,
      long out,
      long outStride) {
    if (headSizeV % SUB_BLOCK != 0) {
      scalar.values(type, packed, scales, count, headSizeV, out, outStride);
      return;
    }
    if (type == KernelType.FLOAT32) {
      copy(packed, count, headSizeV, out, outStride);
      return;
    }
    Unpacking.pairs(type, packed, Math.ceilDiv(count, 2), headSizeV, out, outStride);
    if (type.perTokenHead()) {
      for (int t = 0; t < count; t++) {
        Exponentials.scale(out + t * outStride, headSizeV, readFloat(scales + 4L * t));
      }
    }
  }

  private static void copy(long from, int rows, int width, long to, long toStride) {
    for (int r = 0; r < rows; r++) {
      for (int d = 0; d < width; d += Products.LANES) {
        Products.store(
            Products.load(from + 4L * ((long) r * width + d)), to + r * toStride + 4L * d);
      }
    }
  }
}
