package bifocal.cpu.kernel;

import static bifocal.cpu.raw.RawMemory.readInt;
import static bifocal.cpu.raw.RawMemory.readShort;
import static bifocal.cpu.raw.RawMemory.writeFloat;
import static bifocal.cpu.raw.RawMemory.writeInt;
import static bifocal.cpu.raw.RawMemory.writeShort;

import bifocal.cpu.cache.KernelType;
import bifocal.cpu.cache.Numbers;

/** Stores one token's keys and values in the cache. */
final class KvWriting {
  private static final int SUB_BLOCK = 16;

  private KvWriting() {}

  static void token(KvWriteParams params, long token, long slot) {
    long cache = params.cache();
    int blockSize = CacheParams.blockSize(cache);
    int block = (int) (slot / blockSize);
    int place = (int) (slot % blockSize);
    int headSize = CacheParams.headSize(cache);
    int headSizeV = CacheParams.headSizeV(cache);
    int inputBytes = params.type().bytes();
    for (int head = 0; head < CacheParams.numKvHeads(cache); head++) {
      key(
          params,
          params.keyRow(token) + (long) head * headSize * inputBytes,
          CacheParams.keys(cache, block, head),
          place,
          CacheParams.keyScale(cache, head));
      value(
          params,
          params.valueRow(token) + (long) head * headSizeV * inputBytes,
          CacheParams.values(cache, block, head),
          place,
          CacheParams.valueScale(cache, head));
    }
  }

  private static void key(KvWriteParams params, long from, long part, int place, float scale) {
    KernelType type = CacheParams.type(params.cache());
    int headSize = CacheParams.headSize(params.cache());
    int x = type.packing();
    long to =
        part
            + ((long) (place / SUB_BLOCK) * SUB_BLOCK * headSize + (long) (place % SUB_BLOCK) * x)
                * type.bytes();
    if (type == params.type() && scale == 1) {
      // Dimensions stay in groups of four bytes: one float, or a pair of halves.
      int groups = headSize / x;
      for (int g = 0; g < groups; g++) {
        writeInt(to + 64L * g, readInt(from + 4L * g));
      }
      return;
    }
    float divisor = scale;
    if (type.perTokenHead()) {
      float stored = largest(params.type(), from, headSize) / Numbers.perTokenHeadMax(type);
      int blockSize = CacheParams.blockSize(params.cache());
      writeFloat(part + (long) blockSize * headSize * type.bytes() + 4L * place, stored);
      divisor = stored == 0 ? 1 : stored;
    }
    for (int d = 0; d < headSize; d++) {
      float number = Numbers.read(params.type(), from + (long) d * params.type().bytes());
      long element = (long) (d / x) * SUB_BLOCK * x + d % x;
      Numbers.write(type, to + element * type.bytes(), number / divisor);
    }
  }

  private static void value(KvWriteParams params, long from, long part, int place, float scale) {
    KernelType type = CacheParams.type(params.cache());
    int headSizeV = CacheParams.headSizeV(params.cache());
    int x = type.packing();
    long to = part + ((long) (place / x) * x * headSizeV + place % x) * type.bytes();
    if (type == params.type() && scale == 1 && type.bytes() == 2) {
      for (int d = 0; d < headSizeV; d++) {
        writeShort(to + 4L * d, readShort(from + 2L * d));
      }
      return;
    }
    float divisor = scale;
    if (type.perTokenHead()) {
      float stored = largest(params.type(), from, headSizeV) / Numbers.perTokenHeadMax(type);
      int blockSize = CacheParams.blockSize(params.cache());
      writeFloat(part + (long) blockSize * headSizeV * type.bytes() + 4L * place, stored);
      divisor = stored == 0 ? 1 : stored;
    }
    for (int d = 0; d < headSizeV; d++) {
      float number = Numbers.read(params.type(), from + (long) d * params.type().bytes());
      Numbers.write(type, to + (long) d * x * type.bytes(), number / divisor);
    }
  }

  private static float largest(KernelType type, long from, int count) {
    float largest = 0;
    for (int d = 0; d < count; d++) {
      largest = Math.max(largest, Math.abs(Numbers.read(type, from + (long) d * type.bytes())));
    }
    return largest;
  }
}
