package bifocal.cpu.kernel;

import static bifocal.cpu.raw.RawMemory.readInt;
import static bifocal.cpu.raw.RawMemory.readLong;
import static bifocal.cpu.raw.RawMemory.writeInt;
import static bifocal.cpu.raw.RawMemory.writeLong;

import bifocal.cpu.cache.CpuPackedLayout;
import bifocal.cpu.cache.KernelType;
import bifocal.cpu.raw.RawMemory;

/**
 * The part of a parameter block that describes a KV cache; {@code bifocal_cpu_cache} of the C
 * interface.
 */
final class CacheParams {
  static final long BYTES = 88;

  private static final long K = 0;
  private static final long V = 8;
  private static final long K_BLOCK_STRIDE = 16;
  private static final long V_BLOCK_STRIDE = 24;
  private static final long K_HEAD_STRIDE = 32;
  private static final long V_HEAD_STRIDE = 40;
  private static final long K_SCALE = 48;
  private static final long V_SCALE = 56;
  private static final long SCALE_STRIDE = 64;
  private static final long DTYPE = 68;
  private static final long NUM_KV_HEADS = 72;
  private static final long BLOCK_SIZE = 76;
  private static final long HEAD_SIZE_K = 80;
  private static final long HEAD_SIZE_V = 84;

  private CacheParams() {}

  /** Fills in everything but the base addresses. */
  static void describe(long at, CpuPackedLayout.Shape shape, long kScales, long vScales) {
    writeLong(at + K_HEAD_STRIDE, shape.keyHeadStride());
    writeLong(at + V_HEAD_STRIDE, shape.valueHeadStride());
    writeLong(at + K_SCALE, kScales);
    writeLong(at + V_SCALE, vScales);
    writeInt(at + SCALE_STRIDE, kScales == 0 ? 0 : 1);
    writeInt(at + DTYPE, shape.type().code());
    writeInt(at + NUM_KV_HEADS, shape.numKvHeads());
    writeInt(at + BLOCK_SIZE, shape.blockSize());
    writeInt(at + HEAD_SIZE_K, shape.headSize());
    writeInt(at + HEAD_SIZE_V, shape.headSizeV());
  }

  /** Sets where the blocks are. */
  static void locate(long at, long keys, long values, long blockStride) {
    writeLong(at + K, keys);
    writeLong(at + V, values);
    writeLong(at + K_BLOCK_STRIDE, blockStride);
    writeLong(at + V_BLOCK_STRIDE, blockStride);
  }

  static long keys(long at, int block, int kvHead) {
    return readLong(at + K)
        + block * readLong(at + K_BLOCK_STRIDE)
        + kvHead * readLong(at + K_HEAD_STRIDE);
  }

  static long values(long at, int block, int kvHead) {
    return readLong(at + V)
        + block * readLong(at + V_BLOCK_STRIDE)
        + kvHead * readLong(at + V_HEAD_STRIDE);
  }

  static float keyScale(long at, int kvHead) {
    return scale(at, readLong(at + K_SCALE), kvHead);
  }

  static float valueScale(long at, int kvHead) {
    return scale(at, readLong(at + V_SCALE), kvHead);
  }

  static KernelType type(long at) {
    return KernelType.ofCode(readInt(at + DTYPE));
  }

  static int numKvHeads(long at) {
    return readInt(at + NUM_KV_HEADS);
  }

  static int blockSize(long at) {
    return readInt(at + BLOCK_SIZE);
  }

  static int headSize(long at) {
    return readInt(at + HEAD_SIZE_K);
  }

  static int headSizeV(long at) {
    return readInt(at + HEAD_SIZE_V);
  }

  private static float scale(long at, long scales, int kvHead) {
    return scales == 0
        ? 1f
        : RawMemory.readFloat(scales + 4L * kvHead * readInt(at + SCALE_STRIDE));
  }
}
