package bifocal.cpu.kernel;

import static bifocal.cpu.raw.RawMemory.readInt;
import static bifocal.cpu.raw.RawMemory.readLong;
import static bifocal.cpu.raw.RawMemory.writeInt;
import static bifocal.cpu.raw.RawMemory.writeLong;

import bifocal.cpu.cache.CpuPackedLayout;
import bifocal.cpu.cache.KernelType;
import bifocal.cpu.raw.RawMemory;
import java.lang.foreign.MemorySegment;

/**
 * What a KV write needs to know, in native memory; {@code bifocal_cpu_kv_write} of the C interface.
 */
public final class KvWriteParams {
  /** Size of the block. */
  public static final long BYTES = 144;

  private static final long SIZE = 0;
  private static final long CACHE = 8;
  private static final long K = 96;
  private static final long V = 104;
  private static final long K_TOKEN_STRIDE = 112;
  private static final long V_TOKEN_STRIDE = 120;
  private static final long SLOTS = 128;
  private static final long DTYPE = 136;

  private final MemorySegment block;
  private final long at;

  /**
   * Wraps a block.
   *
   * @param block {@link #BYTES} zeroed native bytes, aligned to 8
   */
  public KvWriteParams(MemorySegment block) {
    this.block = block;
    this.at = RawMemory.address("KV write parameters", block, 0, BYTES);
    writeLong(at + SIZE, BYTES);
  }

  /** The block itself. */
  public MemorySegment block() {
    return block;
  }

  /** Sets what a layer has for its whole life; addresses of scales per KV head may be 0. */
  public void describe(CpuPackedLayout.Shape cache, long kScales, long vScales, KernelType input) {
    CacheParams.describe(at + CACHE, cache, kScales, vScales);
    writeInt(at + DTYPE, input.code());
  }

  /** Sets where the cache's blocks are. */
  public void cache(long keys, long values, long blockStride) {
    CacheParams.locate(at + CACHE, keys, values, blockStride);
  }

  /** Sets the tokens to write; strides are in elements. */
  public void tokens(long keys, long keyStride, long values, long valueStride, long slots) {
    writeLong(at + K, keys);
    writeLong(at + K_TOKEN_STRIDE, keyStride);
    writeLong(at + V, values);
    writeLong(at + V_TOKEN_STRIDE, valueStride);
    writeLong(at + SLOTS, slots);
  }

  long cache() {
    return at + CACHE;
  }

  KernelType type() {
    return KernelType.ofCode(readInt(at + DTYPE));
  }

  long keyRow(long token) {
    return readLong(at + K) + token * readLong(at + K_TOKEN_STRIDE) * type().bytes();
  }

  long valueRow(long token) {
    return readLong(at + V) + token * readLong(at + V_TOKEN_STRIDE) * type().bytes();
  }

  long slot(long token) {
    return readLong(readLong(at + SLOTS) + 8 * token);
  }
}
