package bifocal.core.cache;

import bifocal.core.Incubating;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.NarrowFloats;
import io.vavr.collection.LinkedHashSet;
import io.vavr.collection.Set;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;
import java.util.function.ToIntFunction;

/**
 * Blocks of latent records, one for each token: the latent vector and the rotary key behind it.
 * Values are the front of keys, so a record holds them once.
 *
 * <p>{@link #ROWS} holds plain numbers and can be written and read here. The others count the bytes
 * of packed records; no kernel here reads them.
 */
@Incubating
public final class LatentKvLayout implements KvLayout {
  private static final int LATENT = 512;
  private static final int ROTARY = 64;

  /** Plain numbers of any type, one row for each token. */
  public static final LatentKvLayout ROWS =
      new LatentKvLayout("LATENT_ROWS", LinkedHashSet.empty(), 1, LatentKvLayout::rowBytes);

  /** Plain rows whose page is filled up to 512 bytes. */
  public static final LatentKvLayout ROWS_PAGED_512 =
      new LatentKvLayout("LATENT_ROWS_512", LinkedHashSet.empty(), 512, LatentKvLayout::rowBytes);

  /**
   * 656 bytes: 512 e4m3 numbers, 4 fp32 scales for 128 of them each, 64 rotary numbers of 16 bits.
   */
  public static final LatentKvLayout FP8_DS_MLA =
      new LatentKvLayout(
          "FP8_DS_MLA_656",
          LinkedHashSet.of(KvCacheDtype.FP8_DS_MLA),
          1,
          spec -> LATENT + 4 * Float.BYTES + ROTARY * Short.BYTES);

  /**
   * 352 bytes: 512 numbers of 4 bits, 64 rotary numbers in e4m3, 32 e4m3 scales for 16 of the first
   * each.
   */
  public static final LatentKvLayout NVFP4_DS_MLA =
      new LatentKvLayout(
          "NVFP4_DS_MLA_352",
          LinkedHashSet.of(KvCacheDtype.NVFP4_DS_MLA),
          1,
          spec -> LATENT / 2 + ROTARY + LATENT / 16);

  /**
   * DeepSeek V4, 584 bytes: 448 e4m3 numbers and 64 rotary numbers of 16 bits; behind all rows of a
   * page, 7 power-of-two scales and a byte of padding for each. A page is filled up to 576 bytes.
   */
  public static final LatentKvLayout DEEPSEEK_V4 =
      new LatentKvLayout(
          "DEEPSEEK_V4_584",
          LinkedHashSet.of(KvCacheDtype.FP8_DS_MLA),
          576,
          spec -> (LATENT - ROTARY) + ROTARY * Short.BYTES + Long.BYTES);

  /**
   * DeepSeek V4.1, 528 bytes: 512 e4m3 numbers, rotary ones included, and 16 power-of-two scales. A
   * page is filled up to 512 bytes.
   */
  public static final LatentKvLayout DEEPSEEK_V41 =
      new LatentKvLayout(
          "DEEPSEEK_V41_528",
          LinkedHashSet.of(KvCacheDtype.FP8_DS_MLA),
          512,
          spec -> LATENT + LATENT / 32);

  /** DeepSeek V4.1, 288 bytes: 512 numbers of 4 bits and 32 scales. */
  public static final LatentKvLayout DEEPSEEK_V41_NVFP4 =
      new LatentKvLayout(
          "DEEPSEEK_V41_288",
          LinkedHashSet.of(KvCacheDtype.NVFP4_DS_MLA),
          1,
          spec -> LATENT / 2 + LATENT / 16);

  private final String name;
  private final Set<KvCacheDtype> packed;
  private final int pageUnit;
  private final ToIntFunction<KvCacheSpec> recordBytes;

  private LatentKvLayout(
      String name, Set<KvCacheDtype> packed, int pageUnit, ToIntFunction<KvCacheSpec> recordBytes) {
    this.name = name;
    this.packed = packed;
    this.pageUnit = pageUnit;
    this.recordBytes = recordBytes;
  }

  @Override
  public String name() {
    return name;
  }

  /** Bytes of one token's record, padding of the page left out. */
  public int recordBytes(KvCacheSpec spec) {
    return recordBytes.applyAsInt(spec);
  }

  /**
   * Bytes of a page that stores some records. A compressed cache stores fewer than it has tokens.
   *
   * @param records records in the page
   * @throws ArithmeticException when the size exceeds 64 bits
   */
  public long pageBytes(KvCacheSpec spec, int records) {
    long bytes = Math.multiplyExact((long) records, recordBytes(spec));
    return Math.multiplyExact(Math.ceilDiv(bytes, (long) pageUnit), (long) pageUnit);
  }

  @Override
  public long blockBytes(KvCacheSpec spec) {
    return pageBytes(spec, spec.blockSize());
  }

  /** Values are the front of keys. */
  @Override
  public long valueOffset(KvCacheSpec spec) {
    return 0;
  }

  @Override
  public Option<String> objection(KvCacheSpec spec) {
    if (spec.numKvHeads() != 1) {
      return Option.some("a latent cache has one head, not " + spec.numKvHeads());
    }
    if (plain()) {
      return Option.when(
          spec.dtype().elementType().isEmpty() || spec.dtype().perTokenHead(),
          () -> "it does not hold " + spec.dtype());
    }
    if (!packed.contains(spec.dtype())) {
      return Option.some("it does not hold " + spec.dtype());
    }
    return this == FP8_DS_MLA || this == NVFP4_DS_MLA ? ofVersion32(spec) : ofVersion4(spec);
  }

  private static Option<String> ofVersion32(KvCacheSpec spec) {
    if (spec.headSizeV() != LATENT) {
      return Option.some("kv_lora_rank must be 512 for " + spec.dtype());
    }
    return Option.when(
        spec.headSize() - spec.headSizeV() != ROTARY,
        () -> "pe_dim must be 64 for " + spec.dtype());
  }

  private static Option<String> ofVersion4(KvCacheSpec spec) {
    return Option.when(spec.headSize() != LATENT, () -> "its records are 512 numbers wide");
  }

  @Override
  public void write(
      KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] key, float[] value) {
    DType type = element(spec);
    long start = (long) token * recordBytes(spec);
    float scale = spec.scales().key(kvHead);
    for (int d = 0; d < spec.headSize(); d++) {
      NarrowFloats.store(
          block,
          start + (long) d * type.bytes(),
          type,
          scale == 0 ? 0 : scale == 1 ? key[d] : key[d] / scale);
    }
  }

  @Override
  public void readKey(KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] key) {
    read(spec, block, token, spec.headSize(), spec.scales().key(kvHead), key);
  }

  @Override
  public void readValue(
      KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] value) {
    read(spec, block, token, spec.headSizeV(), spec.scales().key(kvHead), value);
  }

  private void read(
      KvCacheSpec spec, MemorySegment block, int token, int count, float scale, float[] numbers) {
    DType type = element(spec);
    long start = (long) token * recordBytes(spec);
    for (int d = 0; d < count; d++) {
      numbers[d] = NarrowFloats.load(block, start + (long) d * type.bytes(), type) * scale;
    }
  }

  private boolean plain() {
    return packed.isEmpty();
  }

  private static int rowBytes(KvCacheSpec spec) {
    return Math.multiplyExact(
        spec.headSize(), spec.dtype().elementType().map(DType::bytes).getOrElse(0));
  }

  private DType element(KvCacheSpec spec) {
    return spec.dtype()
        .elementType()
        .filter(type -> plain())
        .getOrElseThrow(
            () ->
                BifocalException.of(
                    ErrorCode.UNSUPPORTED, "KV cache layout", name, "one that is read here"));
  }

  @Override
  public String toString() {
    return name;
  }
}
