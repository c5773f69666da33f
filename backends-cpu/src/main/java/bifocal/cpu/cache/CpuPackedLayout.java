package bifocal.cpu.cache;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayout;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The cache layout of the CPU kernels: {@code [K part][V part]}, each {@code [kvHead]}, and inside
 * a head
 *
 * <pre>
 *              K  [block/16][D/x][16][x]                    V  [block/x][D][x]
 *   fp32 (x=1) (t/16)*16*D + d*16 + t%16                    t*D + d
 *   else (x=2) (t/16)*16*D + (d/2)*32 + (t%16)*2 + d%2      (t/2)*2*D + d*2 + t%2
 * </pre>
 *
 * <p>Sixteen keys of one dimension lie together, so a score needs neither a transpose nor a sum
 * across lanes, and a block of any multiple of 16 tokens costs the same. Scales of per-token-head
 * types lie behind the elements of each head, one float per token. Each head's part starts at a
 * multiple of 64 bytes from the start of its block.
 */
public final class CpuPackedLayout implements KvLayout {
  /** The layout; it has no state. */
  public static final CpuPackedLayout INSTANCE = new CpuPackedLayout();

  /** Tokens of a sub-block. */
  public static final int TOKENS = 16;

  private static final long ALIGNMENT = 64;

  private CpuPackedLayout() {}

  /**
   * Sizes and places of one cache contract in this layout.
   *
   * @param type element type
   * @param blockSize tokens per block
   */
  public record Shape(KernelType type, int blockSize, int numKvHeads, int headSize, int headSizeV) {

    /**
     * The shape of a contract.
     *
     * @throws BifocalException {@code KV_INCOMPATIBLE} when this layout cannot hold it
     */
    public static Shape of(KvCacheSpec spec) {
      INSTANCE
          .objection(spec)
          .forEach(
              reason -> {
                throw BifocalException.of(ErrorCode.KV_INCOMPATIBLE, "CPU_PACKED cache: " + reason);
              });
      return new Shape(
          KernelType.of(spec.dtype()).get(),
          spec.blockSize(),
          spec.numKvHeads(),
          spec.headSize(),
          spec.headSizeV());
    }

    /** Bytes from one head's keys to the next. */
    public long keyHeadStride() {
      return aligned(headBytes(headSize));
    }

    /** Bytes from one head's values to the next. */
    public long valueHeadStride() {
      return aligned(headBytes(headSizeV));
    }

    /** Byte offset of a block's values. */
    public long valueOffset() {
      return Math.multiplyExact(keyHeadStride(), (long) numKvHeads);
    }

    /** Bytes of a block. */
    public long blockBytes() {
      return Math.addExact(valueOffset(), Math.multiplyExact(valueHeadStride(), (long) numKvHeads));
    }

    /** Index of a key's element in its head's part. */
    public long keyElement(int token, int dimension) {
      int x = type.packing();
      return (long) (token / TOKENS) * TOKENS * headSize
          + (long) (dimension / x) * TOKENS * x
          + (long) (token % TOKENS) * x
          + dimension % x;
    }

    /** Index of a value's element in its head's part. */
    public long valueElement(int token, int dimension) {
      int x = type.packing();
      return (long) (token / x) * x * headSizeV + (long) dimension * x + token % x;
    }

    /** Byte offset, in its head's part, of the scale of a token's key. */
    public long keyScale(int token) {
      return (long) blockSize * headSize * type.bytes() + 4L * token;
    }

    /** Byte offset, in its head's part, of the scale of a token's value. */
    public long valueScale(int token) {
      return (long) blockSize * headSizeV * type.bytes() + 4L * token;
    }

    private long headBytes(int size) {
      return Math.multiplyExact(
          (long) blockSize, (long) size * type.bytes() + (type.perTokenHead() ? 4 : 0));
    }

    private static long aligned(long bytes) {
      return Math.multiplyExact(Math.ceilDiv(bytes, ALIGNMENT), ALIGNMENT);
    }
  }

  @Override
  public String name() {
    return "CPU_PACKED";
  }

  @Override
  public Option<String> objection(KvCacheSpec spec) {
    if (KernelType.of(spec.dtype()).isEmpty()) {
      return Option.some("the CPU kernels do not read " + spec.dtype());
    }
    if (spec.blockSize() % TOKENS != 0) {
      return Option.some("block size " + spec.blockSize() + " is not a multiple of " + TOKENS);
    }
    if (spec.headSize() % 2 != 0 || spec.headSizeV() % 2 != 0) {
      return Option.some(
          "head sizes " + spec.headSize() + "/" + spec.headSizeV() + " are not even");
    }
    return Option.none();
  }

  @Override
  public long blockBytes(KvCacheSpec spec) {
    return Shape.of(spec).blockBytes();
  }

  @Override
  public long valueOffset(KvCacheSpec spec) {
    return Shape.of(spec).valueOffset();
  }

  @Override
  public void write(
      KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] key, float[] value) {
    Shape shape = Shape.of(spec);
    requireInside(shape, block, token, kvHead);
    long keys = kvHead * shape.keyHeadStride();
    float keyScale =
        shape.type().perTokenHead()
            ? storedScale(shape.type(), block, keys + shape.keyScale(token), key, shape.headSize())
            : spec.scales().key(kvHead);
    for (int d = 0; d < shape.headSize(); d++) {
      Numbers.write(
          shape.type(),
          block,
          keys + shape.keyElement(token, d) * shape.type().bytes(),
          key[d] / keyScale);
    }
    long values = shape.valueOffset() + kvHead * shape.valueHeadStride();
    float valueScale =
        shape.type().perTokenHead()
            ? storedScale(
                shape.type(), block, values + shape.valueScale(token), value, shape.headSizeV())
            : spec.scales().value(kvHead);
    for (int d = 0; d < shape.headSizeV(); d++) {
      Numbers.write(
          shape.type(),
          block,
          values + shape.valueElement(token, d) * shape.type().bytes(),
          value[d] / valueScale);
    }
  }

  @Override
  public void readKey(KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] key) {
    Shape shape = Shape.of(spec);
    requireInside(shape, block, token, kvHead);
    long keys = kvHead * shape.keyHeadStride();
    float scale =
        shape.type().perTokenHead()
            ? block.get(ValueLayout.JAVA_FLOAT_UNALIGNED, keys + shape.keyScale(token))
            : spec.scales().key(kvHead);
    for (int d = 0; d < shape.headSize(); d++) {
      key[d] =
          scale
              * Numbers.read(
                  shape.type(), block, keys + shape.keyElement(token, d) * shape.type().bytes());
    }
  }

  @Override
  public void readValue(
      KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] value) {
    Shape shape = Shape.of(spec);
    requireInside(shape, block, token, kvHead);
    long values = shape.valueOffset() + kvHead * shape.valueHeadStride();
    float scale =
        shape.type().perTokenHead()
            ? block.get(ValueLayout.JAVA_FLOAT_UNALIGNED, values + shape.valueScale(token))
            : spec.scales().value(kvHead);
    for (int d = 0; d < shape.headSizeV(); d++) {
      value[d] =
          scale
              * Numbers.read(
                  shape.type(),
                  block,
                  values + shape.valueElement(token, d) * shape.type().bytes());
    }
  }

  private static float storedScale(
      KernelType type, MemorySegment block, long at, float[] numbers, int count) {
    float scale = Numbers.perTokenHeadScale(type, numbers, count);
    block.set(ValueLayout.JAVA_FLOAT_UNALIGNED, at, scale);
    return scale == 0 ? 1 : scale;
  }

  private static void requireInside(Shape shape, MemorySegment block, int token, int kvHead) {
    if (token < 0 || token >= shape.blockSize()) {
      throw BifocalException.of(
          ErrorCode.SLOT_OUT_OF_RANGE, "token of a block", token, "0.." + (shape.blockSize() - 1));
    }
    if (kvHead < 0 || kvHead >= shape.numKvHeads()) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "KV head", kvHead, "0.." + (shape.numKvHeads() - 1));
    }
    if (block.byteSize() < shape.blockBytes()) {
      throw BifocalException.of(
          ErrorCode.MEMORY_TOO_SMALL,
          "block of a KV cache",
          block.byteSize() + " bytes",
          shape.blockBytes() + " bytes");
    }
  }
}
