package bifocal.cuda.select;

import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayout;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;
import java.util.function.Predicate;
import java.util.function.ToLongFunction;

/** Layouts of caches whose numbers are packed. They count bytes; no kernel here reads them. */
final class PackedKvLayouts {
  /** Two numbers a byte, and an fp32 scale behind each vector. */
  static final KvLayout INT4_PER_TOKEN_HEAD =
      new Packed(
          "INT4_PER_TOKEN_HEAD",
          KvCacheDtype.INT4_PER_TOKEN_HEAD::equals,
          spec -> spec.headSize() / 2 + Float.BYTES,
          spec -> spec.headSizeV() / 2 + Float.BYTES);

  /** Two numbers a byte and an fp8 scale for every 16: keys and their scales, then values. */
  static final KvLayout NVFP4 =
      new Packed(
          "NVFP4",
          dtype -> dtype == KvCacheDtype.NVFP4 || dtype == KvCacheDtype.NVFP4_4OVER6,
          spec -> spec.headSize() / 2 + spec.headSize() / 16,
          spec -> spec.headSizeV() / 2 + spec.headSizeV() / 16);

  /** A token's packed key, packed value, and padding to an even number of bytes. */
  static final KvLayout TURBOQUANT =
      new Packed(
          "TURBOQUANT",
          dtype -> dtype.label().startsWith("turboquant"),
          PackedKvLayouts::turboQuantKey,
          PackedKvLayouts::turboQuantValue);

  private PackedKvLayouts() {}

  private static long turboQuantKey(KvCacheSpec spec) {
    return switch (spec.dtype()) {
      case TURBOQUANT_K8V4 -> spec.headSize();
      case TURBOQUANT_4BIT_NC -> bits(spec.headSize(), 4) + Short.BYTES;
      default -> bits(spec.headSize(), 3) + Short.BYTES;
    };
  }

  private static long turboQuantValue(KvCacheSpec spec) {
    int width = spec.dtype() == KvCacheDtype.TURBOQUANT_3BIT_NC ? 3 : 4;
    long value = bits(spec.headSizeV(), width) + 2L * Short.BYTES;
    return value + (turboQuantKey(spec) + value) % 2;
  }

  private static long bits(int numbers, int width) {
    return Math.ceilDiv((long) numbers * width, Byte.SIZE);
  }

  private record Packed(
      String name,
      Predicate<KvCacheDtype> holds,
      ToLongFunction<KvCacheSpec> keyBytes,
      ToLongFunction<KvCacheSpec> valueBytes)
      implements KvLayout {

    @Override
    public Option<String> objection(KvCacheSpec spec) {
      return Option.when(!holds.test(spec.dtype()), () -> "it does not hold " + spec.dtype());
    }

    @Override
    public long blockBytes(KvCacheSpec spec) {
      return entries(spec) * (keyBytes.applyAsLong(spec) + valueBytes.applyAsLong(spec));
    }

    @Override
    public long valueOffset(KvCacheSpec spec) {
      return entries(spec) * keyBytes.applyAsLong(spec);
    }

    private static long entries(KvCacheSpec spec) {
      return (long) spec.blockSize() * spec.numKvHeads();
    }

    @Override
    public void write(
        KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] key, float[] value) {
      throw notHere();
    }

    @Override
    public void readKey(KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] key) {
      throw notHere();
    }

    @Override
    public void readValue(
        KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] value) {
      throw notHere();
    }

    private BifocalException notHere() {
      return BifocalException.of(
          ErrorCode.UNSUPPORTED, "KV cache layout", name, "one that some kernel here reads");
    }
  }
}
