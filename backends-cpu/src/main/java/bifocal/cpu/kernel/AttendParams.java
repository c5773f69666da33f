package bifocal.cpu.kernel;

import static bifocal.cpu.raw.RawMemory.readFloat;
import static bifocal.cpu.raw.RawMemory.readInt;
import static bifocal.cpu.raw.RawMemory.readLong;
import static bifocal.cpu.raw.RawMemory.writeFloat;
import static bifocal.cpu.raw.RawMemory.writeInt;
import static bifocal.cpu.raw.RawMemory.writeLong;

import bifocal.cpu.cache.CpuPackedLayout;
import bifocal.cpu.cache.KernelType;
import bifocal.cpu.raw.RawMemory;
import java.lang.foreign.MemorySegment;

/**
 * What all work items of one forward share, in native memory; {@code bifocal_cpu_params} of the C
 * interface. Addresses of zero stand for what is not wanted.
 */
public final class AttendParams {
  /** Size of the block. */
  public static final long BYTES = 232;

  private static final long SIZE = 0;
  private static final long CACHE = 8;
  private static final long Q = 96;
  private static final long OUT = 104;
  private static final long LSE = 112;
  private static final long Q_TOKEN_STRIDE = 120;
  private static final long OUT_TOKEN_STRIDE = 128;
  private static final long LSE_TOKEN_STRIDE = 136;
  private static final long BLOCK_TABLE = 144;
  private static final long BLOCK_TABLE_STRIDE = 152;
  private static final long ALIBI_SLOPES = 160;
  private static final long SINKS = 168;
  private static final long KEY_FIRST = 176;
  private static final long KEY_LAST = 184;
  private static final long PARTIAL_OUT = 192;
  private static final long PARTIAL_LSE = 200;
  private static final long Q_DTYPE = 208;
  private static final long OUT_DTYPE = 212;
  private static final long NUM_Q_HEADS = 216;
  private static final long SCALE = 220;
  private static final long SOFTCAP = 224;

  private final MemorySegment block;
  private final long at;

  /**
   * Wraps a block.
   *
   * @param block {@link #BYTES} zeroed native bytes, aligned to 8
   */
  public AttendParams(MemorySegment block) {
    this.block = block;
    this.at = RawMemory.address("attention parameters", block, 0, BYTES);
    writeLong(at + SIZE, BYTES);
  }

  /** The block itself. */
  public MemorySegment block() {
    return block;
  }

  /**
   * Sets what a layer has for its whole life.
   *
   * @param kScales address of one scale per KV head, or 0
   * @param softcap 0 when there is none
   * @param sinks address of one logit per query head, or 0
   * @param alibiSlopes address of one slope per query head, or 0
   */
  public void describe(
      CpuPackedLayout.Shape cache,
      long kScales,
      long vScales,
      KernelType queries,
      int numHeads,
      float scale,
      float softcap,
      long sinks,
      long alibiSlopes) {
    CacheParams.describe(at + CACHE, cache, kScales, vScales);
    writeInt(at + Q_DTYPE, queries.code());
    writeInt(at + NUM_Q_HEADS, numHeads);
    writeFloat(at + SCALE, scale);
    writeFloat(at + SOFTCAP, softcap);
    writeLong(at + SINKS, sinks);
    writeLong(at + ALIBI_SLOPES, alibiSlopes);
  }

  /** Sets where the cache's blocks are. */
  public void cache(long keys, long values, long blockStride) {
    CacheParams.locate(at + CACHE, keys, values, blockStride);
  }

  /** Sets the queries; the stride is in elements. */
  public void queries(long address, long tokenStride) {
    writeLong(at + Q, address);
    writeLong(at + Q_TOKEN_STRIDE, tokenStride);
  }

  /** Sets where results go; strides are in elements. */
  public void output(KernelType type, long out, long outStride, long lse, long lseStride) {
    writeInt(at + OUT_DTYPE, type.code());
    writeLong(at + OUT, out);
    writeLong(at + OUT_TOKEN_STRIDE, outStride);
    writeLong(at + LSE, lse);
    writeLong(at + LSE_TOKEN_STRIDE, lseStride);
  }

  /** Sets which blocks hold which keys, and which keys a query token sees. */
  public void batch(long blockTable, long blockTableStride, long keyFirst, long keyLast) {
    writeLong(at + BLOCK_TABLE, blockTable);
    writeLong(at + BLOCK_TABLE_STRIDE, blockTableStride);
    writeLong(at + KEY_FIRST, keyFirst);
    writeLong(at + KEY_LAST, keyLast);
  }

  /** Sets where partial results go. */
  public void partials(long out, long lse) {
    writeLong(at + PARTIAL_OUT, out);
    writeLong(at + PARTIAL_LSE, lse);
  }

  long cache() {
    return at + CACHE;
  }

  long queryRow(int token) {
    return readLong(at + Q) + token * readLong(at + Q_TOKEN_STRIDE) * queryType().bytes();
  }

  long outRow(int token) {
    return readLong(at + OUT) + token * readLong(at + OUT_TOKEN_STRIDE) * outType().bytes();
  }

  boolean wantsLse() {
    return readLong(at + LSE) != 0;
  }

  long lseRow(int token) {
    return readLong(at + LSE) + 4 * token * readLong(at + LSE_TOKEN_STRIDE);
  }

  KernelType queryType() {
    return KernelType.ofCode(readInt(at + Q_DTYPE));
  }

  KernelType outType() {
    return KernelType.ofCode(readInt(at + OUT_DTYPE));
  }

  int numHeads() {
    return readInt(at + NUM_Q_HEADS);
  }

  int groupSize() {
    return numHeads() / CacheParams.numKvHeads(at + CACHE);
  }

  float scale() {
    return readFloat(at + SCALE);
  }

  float softcap() {
    return readFloat(at + SOFTCAP);
  }

  int block(int request, int index) {
    return readInt(
        readLong(at + BLOCK_TABLE) + 4 * (request * readLong(at + BLOCK_TABLE_STRIDE) + index));
  }

  boolean hasIntervals() {
    return readLong(at + KEY_FIRST) != 0;
  }

  int keyFirst(int token) {
    return readInt(readLong(at + KEY_FIRST) + 4L * token);
  }

  int keyLast(int token) {
    return readInt(readLong(at + KEY_LAST) + 4L * token);
  }

  boolean hasSinks() {
    return readLong(at + SINKS) != 0;
  }

  float sink(int head) {
    return readFloat(readLong(at + SINKS) + 4L * head);
  }

  boolean hasAlibi() {
    return readLong(at + ALIBI_SLOPES) != 0;
  }

  float alibiSlope(int head) {
    return readFloat(readLong(at + ALIBI_SLOPES) + 4L * head);
  }

  long partialOut(long row, int headSizeV) {
    return readLong(at + PARTIAL_OUT) + 4 * row * headSizeV;
  }

  long partialLse(long row) {
    return readLong(at + PARTIAL_LSE) + 4 * row;
  }
}
