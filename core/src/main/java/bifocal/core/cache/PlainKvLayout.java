package bifocal.core.cache;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.NarrowFloats;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * A block record of plain elements: all keys, then all values, without gaps. A host tensor {@code
 * [blocks, 2, blockSize, heads, headSize]} (NHD) or {@code [blocks, 2, heads, blockSize, headSize]}
 * (HND) is a cache of this layout.
 *
 * <p>Types with a scale per token and head keep their scales, fp32 in native byte order, behind the
 * values: first those of the keys, then those of the values, in the order of the elements. Other
 * types are stored divided by the contract's scales.
 *
 * <p>Kernels address a record by the strides given here; the byte offsets of one head of one token
 * are {@code token * tokenStride + head * headStride} from the start of the keys or of the values.
 */
public final class PlainKvLayout implements KvLayout {
  private static final ValueLayout.OfFloat SCALE =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.nativeOrder());
  private static final float INT8_MAX = 127f;

  /** Which of tokens and heads varies slower inside a part. */
  enum Order {
    TOKEN_FIRST,
    HEAD_FIRST
  }

  private final String name;
  private final Order order;

  PlainKvLayout(String name, Order order) {
    this.name = name;
    this.order = order;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Option<String> objection(KvCacheSpec spec) {
    return spec.dtype().elementType().isDefined()
        ? Option.none()
        : Option.some(spec.dtype() + " numbers are not plain elements");
  }

  @Override
  public long blockBytes(KvCacheSpec spec) {
    return spec.dtype().perTokenHead()
        ? Math.addExact(scaleOffset(spec), 2L * Float.BYTES * entries(spec))
        : elementBytes(spec);
  }

  @Override
  public long valueOffset(KvCacheSpec spec) {
    return Math.multiplyExact(entries(spec), (long) spec.headSize() * element(spec).bytes());
  }

  /** Bytes from a token's key to the next token's, for one head. */
  public long keyTokenStride(KvCacheSpec spec) {
    return tokenStride(spec, spec.headSize());
  }

  /** Bytes from a head's key to the next head's, for one token. */
  public long keyHeadStride(KvCacheSpec spec) {
    return headStride(spec, spec.headSize());
  }

  /** Bytes from a token's value to the next token's, for one head. */
  public long valueTokenStride(KvCacheSpec spec) {
    return tokenStride(spec, spec.headSizeV());
  }

  /** Bytes from a head's value to the next head's, for one token. */
  public long valueHeadStride(KvCacheSpec spec) {
    return headStride(spec, spec.headSizeV());
  }

  /**
   * Byte offset of the scale of one token's key for one head.
   *
   * @throws BifocalException {@code KV_INCOMPATIBLE} when the type has no such scales
   */
  public long keyScaleOffset(KvCacheSpec spec, int token, int kvHead) {
    requirePerTokenHead(spec);
    return scaleOffset(spec) + (long) Float.BYTES * entry(spec, token, kvHead);
  }

  /**
   * Byte offset of the scale of one token's value for one head.
   *
   * @throws BifocalException {@code KV_INCOMPATIBLE} when the type has no such scales
   */
  public long valueScaleOffset(KvCacheSpec spec, int token, int kvHead) {
    return keyScaleOffset(spec, token, kvHead) + Float.BYTES * entries(spec);
  }

  @Override
  public void write(
      KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] key, float[] value) {
    long entry = entry(spec, token, kvHead);
    long keyStart = entry * spec.headSize() * element(spec).bytes();
    long valueStart = valueOffset(spec) + entry * spec.headSizeV() * element(spec).bytes();
    float keyScale = spec.scales().key(kvHead);
    float valueScale = spec.scales().value(kvHead);
    if (spec.dtype().perTokenHead()) {
      keyScale = scaleOf(spec, key, spec.headSize());
      valueScale = scaleOf(spec, value, spec.headSizeV());
      block.set(SCALE, keyScaleOffset(spec, token, kvHead), keyScale);
      block.set(SCALE, valueScaleOffset(spec, token, kvHead), valueScale);
    }
    store(block, keyStart, element(spec), key, spec.headSize(), keyScale);
    store(block, valueStart, element(spec), value, spec.headSizeV(), valueScale);
  }

  @Override
  public void readKey(KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] key) {
    float scale =
        spec.dtype().perTokenHead()
            ? block.get(SCALE, keyScaleOffset(spec, token, kvHead))
            : spec.scales().key(kvHead);
    long start = entry(spec, token, kvHead) * spec.headSize() * element(spec).bytes();
    load(block, start, element(spec), key, spec.headSize(), scale);
  }

  @Override
  public void readValue(
      KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] value) {
    float scale =
        spec.dtype().perTokenHead()
            ? block.get(SCALE, valueScaleOffset(spec, token, kvHead))
            : spec.scales().value(kvHead);
    long start =
        valueOffset(spec) + entry(spec, token, kvHead) * spec.headSizeV() * element(spec).bytes();
    load(block, start, element(spec), value, spec.headSizeV(), scale);
  }

  /**
   * Quantises by division, because {@code value * (1 / scale)} rounds twice. A scale of zero means
   * that all numbers are zero.
   */
  private static void store(
      MemorySegment block, long start, DType type, float[] numbers, int count, float scale) {
    for (int d = 0; d < count; d++) {
      float stored = scale == 0 ? 0 : scale == 1 ? numbers[d] : numbers[d] / scale;
      NarrowFloats.store(block, start + (long) d * type.bytes(), type, stored);
    }
  }

  private static void load(
      MemorySegment block, long start, DType type, float[] numbers, int count, float scale) {
    for (int d = 0; d < count; d++) {
      numbers[d] = NarrowFloats.load(block, start + (long) d * type.bytes(), type) * scale;
    }
  }

  /** The largest magnitude becomes the largest number of the type; NaN stays visible. */
  private static float scaleOf(KvCacheSpec spec, float[] numbers, int count) {
    float largest = 0;
    for (int d = 0; d < count; d++) {
      largest = Math.max(largest, Math.abs(numbers[d]));
    }
    return largest / (element(spec) == DType.INT8 ? INT8_MAX : NarrowFloats.E4M3_MAX);
  }

  private long tokenStride(KvCacheSpec spec, int headSize) {
    long row = (long) headSize * element(spec).bytes();
    return switch (order) {
      case TOKEN_FIRST -> spec.numKvHeads() * row;
      case HEAD_FIRST -> row;
    };
  }

  private long headStride(KvCacheSpec spec, int headSize) {
    long row = (long) headSize * element(spec).bytes();
    return switch (order) {
      case TOKEN_FIRST -> row;
      case HEAD_FIRST -> spec.blockSize() * row;
    };
  }

  private long entry(KvCacheSpec spec, int token, int kvHead) {
    return switch (order) {
      case TOKEN_FIRST -> (long) token * spec.numKvHeads() + kvHead;
      case HEAD_FIRST -> (long) kvHead * spec.blockSize() + token;
    };
  }

  private static long entries(KvCacheSpec spec) {
    return (long) spec.blockSize() * spec.numKvHeads();
  }

  private static long elementBytes(KvCacheSpec spec) {
    return Math.multiplyExact(
        entries(spec), ((long) spec.headSize() + spec.headSizeV()) * element(spec).bytes());
  }

  private static long scaleOffset(KvCacheSpec spec) {
    return Math.ceilDiv(elementBytes(spec), (long) Float.BYTES) * Float.BYTES;
  }

  private static DType element(KvCacheSpec spec) {
    return spec.dtype()
        .elementType()
        .getOrElseThrow(
            () ->
                BifocalException.of(
                    ErrorCode.KV_INCOMPATIBLE,
                    "type of a KV cache of plain elements",
                    spec.dtype(),
                    "a type with an element for each number"));
  }

  private static void requirePerTokenHead(KvCacheSpec spec) {
    if (!spec.dtype().perTokenHead()) {
      throw BifocalException.of(
          ErrorCode.KV_INCOMPATIBLE,
          "scales in the cache",
          spec.dtype(),
          "a type with a scale per token and head");
    }
  }

  @Override
  public String toString() {
    return name;
  }
}
