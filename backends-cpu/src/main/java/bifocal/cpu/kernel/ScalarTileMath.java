package bifocal.cpu.kernel;

import static bifocal.cpu.raw.RawMemory.readFloat;
import static bifocal.cpu.raw.RawMemory.readInt;
import static bifocal.cpu.raw.RawMemory.writeFloat;

import bifocal.cpu.cache.KernelType;
import bifocal.cpu.cache.Numbers;
import bifocal.cpu.raw.RawMemory;

/** The inner loops in plain Java, one number at a time: for JVMs without the Vector API. */
public final class ScalarTileMath implements TileMath {
  private static final int SUB_BLOCK = 16;
  private static final long ROW = 64;

  @Override
  public String name() {
    return "scalar";
  }

  @Override
  public int rowBlock() {
    return 1;
  }

  @Override
  public int lanes() {
    return SUB_BLOCK;
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
    for (int r = 0; r < rows; r++) {
      long from = q + r * qStride;
      long to = s + r * sStride;
      group(from, k0, headSize, to);
      group(from, k1, headSize, to + ROW);
      group(from, k2, headSize, to + 2 * ROW);
      group(from, k3, headSize, to + 3 * ROW);
    }
  }

  private static void group(long q, long k, int headSize, long s) {
    for (int j = 0; j < SUB_BLOCK; j += 4) {
      float a = 0;
      float b = 0;
      float c = 0;
      float d = 0;
      long at = k + 4L * j;
      for (int i = 0; i < headSize; i++) {
        float x = readFloat(q + 4L * i);
        a += x * readFloat(at);
        b += x * readFloat(at + 4);
        c += x * readFloat(at + 8);
        d += x * readFloat(at + 12);
        at += ROW;
      }
      writeFloat(s + 4L * j, a);
      writeFloat(s + 4L * j + 4, b);
      writeFloat(s + 4L * j + 8, c);
      writeFloat(s + 4L * j + 12, d);
    }
  }

  @Override
  public void softcap(long s, int from, int to, float cap) {
    for (int i = from; i < to; i++) {
      double x = readFloat(s + 4L * i);
      writeFloat(s + 4L * i, (float) (cap * Math.tanh(x / cap)));
    }
  }

  @Override
  public void alibi(long s, int from, int to, float slope, int offset) {
    for (int i = from; i < to; i++) {
      writeFloat(s + 4L * i, readFloat(s + 4L * i) + slope * (i + offset));
    }
  }

  @Override
  public float weights(long s, int from, int to, int zeroFrom, int zeroTo, long state) {
    float before = readFloat(state);
    float largest = before;
    for (int i = from; i < to; i++) {
      float x = readFloat(s + 4L * i);
      largest = x > largest ? x : largest;
    }
    float sum = 0;
    for (int i = from; i < to; i++) {
      float weight = (float) Math.exp(readFloat(s + 4L * i) - largest);
      writeFloat(s + 4L * i, weight);
      sum += weight;
    }
    RawMemory.fillFloats(s + 4L * zeroFrom, from - zeroFrom, 0);
    RawMemory.fillFloats(s + 4L * to, zeroTo - to, 0);
    float factor =
        before == Float.NEGATIVE_INFINITY ? 1 : (float) Math.exp((double) before - largest);
    writeFloat(state, largest);
    writeFloat(state + 4, readFloat(state + 4) * factor + sum);
    return factor;
  }

  @Override
  public void scale(long o, int count, float factor) {
    for (int i = 0; i < count; i++) {
      writeFloat(o + 4L * i, readFloat(o + 4L * i) * factor);
    }
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
    for (int r = 0; r < rows; r++) {
      for (int c = 0; c < columns; c += 4) {
        column(o + r * oStride + 4L * c, p + r * pStride, v + 4L * c, vStride, count);
      }
    }
  }

  private static void column(long o, long p, long v, long vStride, int count) {
    float a = readFloat(o);
    float b = readFloat(o + 4);
    float c = readFloat(o + 8);
    float d = readFloat(o + 12);
    for (int t = 0; t < count; t++) {
      float weight = readFloat(p + 4L * t);
      long at = v + t * vStride;
      a += weight * readFloat(at);
      b += weight * readFloat(at + 4);
      c += weight * readFloat(at + 8);
      d += weight * readFloat(at + 12);
    }
    writeFloat(o, a);
    writeFloat(o + 4, b);
    writeFloat(o + 8, c);
    writeFloat(o + 12, d);
  }

  @Override
  public void keys(KernelType type, long packed, long scales, int headSize, long out) {
    int x = type.packing();
    for (int d = 0; d < headSize; d++) {
      for (int j = 0; j < SUB_BLOCK; j++) {
        long element = (long) (d / x) * SUB_BLOCK * x + (long) j * x + d % x;
        float key = Numbers.read(type, packed + element * type.bytes());
        float scale = type.perTokenHead() ? readFloat(scales + 4L * j) : 1;
        writeFloat(out + d * ROW + 4L * j, key * scale);
      }
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
    int x = type.packing();
    for (int t = 0; t < count; t++) {
      float scale = type.perTokenHead() ? readFloat(scales + 4L * t) : 1;
      long row = out + t * outStride;
      for (int d = 0; d < headSizeV; d++) {
        long element = (long) (t / x) * x * headSizeV + (long) d * x + t % x;
        writeFloat(row + 4L * d, scale * Numbers.read(type, packed + element * type.bytes()));
      }
      RawMemory.zero(row + 4L * headSizeV, outStride - 4L * headSizeV);
    }
  }

  @Override
  public boolean readsPairs(KernelType type, int rows) {
    return type == KernelType.BFLOAT16 && rows <= rowBlock();
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
    for (int r = 0; r < rows; r++) {
      long from = q + r * qStride;
      long to = s + r * sStride;
      pairGroup(from, k0, headSize, to);
      pairGroup(from, k1, headSize, to + ROW);
      pairGroup(from, k2, headSize, to + 2 * ROW);
      pairGroup(from, k3, headSize, to + 3 * ROW);
    }
  }

  private static void pairGroup(long q, long k, int headSize, long s) {
    for (int j = 0; j < SUB_BLOCK; j++) {
      float sum = 0;
      for (int d = 0; d < headSize; d += 2) {
        int word = readInt(k + ROW * (d / 2) + 4L * j);
        sum += readFloat(q + 4L * d) * first(word);
        sum += readFloat(q + 4L * d + 4) * second(word);
      }
      writeFloat(s + 4L * j, sum);
    }
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
    for (int r = 0; r < rows; r++) {
      for (int c = 0; c < columns; c++) {
        pairColumn(o + r * oStride + 4L * c, p + r * pStride, v + 4L * c, vStride, pairs);
      }
    }
  }

  private static void pairColumn(long o, long p, long v, long vStride, int pairs) {
    float sum = readFloat(o);
    for (int t = 0; t < pairs; t++) {
      int word = readInt(v + t * vStride);
      sum += readFloat(p + 8L * t) * first(word);
      sum += readFloat(p + 8L * t + 4) * second(word);
    }
    writeFloat(o, sum);
  }

  /** The bfloat16 in the lower half of a word. */
  private static float first(int word) {
    return Float.intBitsToFloat(word << 16);
  }

  /** The bfloat16 in the upper half of a word. */
  private static float second(int word) {
    return Float.intBitsToFloat(word & 0xffff0000);
  }
}
