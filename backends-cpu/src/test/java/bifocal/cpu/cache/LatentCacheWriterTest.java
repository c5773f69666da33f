package bifocal.cpu.cache;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.KvInput;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvLayout;
import bifocal.core.cache.KvScales;
import bifocal.core.cache.LatentKvLayout;
import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.NarrowFloats;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Latent vectors and rotary keys in a cache of plain rows. */
class LatentCacheWriterTest {
  private static final int RANK = 512;
  private static final int ROTARY = 64;
  private static final int BLOCK = 16;
  private static final int BLOCKS = 3;
  private static final int TOKENS = 8;

  private final Arena arena = Arena.ofConfined();
  private final Random random = new Random(31);

  @AfterEach
  void release() {
    arena.close();
  }

  private KvCacheView cache(KvLayout layout, KvCacheDtype type, KvScales scales) {
    KvCacheSpec spec = new KvCacheSpec(layout, type, BLOCK, 1, RANK + ROTARY, RANK, scales);
    return KvCacheView.wrap(arena.allocate(BLOCKS * spec.blockBytes(), 64), spec);
  }

  private KvCacheView cache(KvCacheDtype type) {
    return cache(LatentKvLayout.ROWS, type, KvScales.ONE);
  }

  private TensorView numbers(DType type, int tokens, int width) {
    MemorySegment memory = arena.allocate((long) tokens * width * type.bytes(), 64);
    for (long i = 0; i < (long) tokens * width; i++) {
      NarrowFloats.store(memory, i * type.bytes(), type, random.nextFloat() + 0.5f);
    }
    return TensorView.ofHost(memory, type, tokens, width);
  }

  private SlotMapping slots(long... slots) {
    MemorySegment memory = arena.allocate(ValueLayout.JAVA_LONG, slots.length);
    MemorySegment.copy(slots, 0, memory, ValueLayout.JAVA_LONG, 0, slots.length);
    return new SlotMapping(TensorView.ofHost(memory, DType.INT64, slots.length));
  }

  private static float[] row(KvCacheView cache, long slot) {
    float[] row = new float[RANK + ROTARY];
    cache.tokens(cache.spec().layout()).readKey(slot, 0, row);
    return row;
  }

  private static float at(TensorView numbers, int token, int d) {
    long element = token * numbers.stride(0) + d * numbers.stride(1);
    return NarrowFloats.load(numbers.data(), element * numbers.dtype().bytes(), numbers.dtype());
  }

  @ParameterizedTest(name = "a cache of {1} from {0}")
  @CsvSource({"BF16, BFLOAT16", "FP16, FLOAT16", "FP32, FLOAT32"})
  void aTokenWithoutASlotIsNotWritten(DType type, KvCacheDtype cached) {
    KvCacheView cache = cache(cached);
    KvInput.Latent input =
        new KvInput.Latent(numbers(type, TOKENS, RANK), numbers(type, TOKENS, ROTARY));

    new LatentCacheWriter(cache).write(input, slots(16, 17, 18, 19, 20, 21, 22, -1));

    for (int token = 0; token < 7; token++) {
      float[] row = row(cache, BLOCK + token);
      for (int d = 0; d < RANK; d++) {
        assertThat(row[d]).isEqualTo(at(input.ckv(), token, d));
      }
      for (int d = 0; d < ROTARY; d++) {
        assertThat(row[RANK + d]).isEqualTo(at(input.kPe(), token, d));
      }
    }
    assertThat(row(cache, 23)).containsOnly(0);
    assertThat(row(cache, 0)).as("the null block").containsOnly(0);
  }

  @Test
  void tokensOfAStepMayLieAnywhere() {
    KvCacheView cache = cache(KvCacheDtype.FLOAT32);
    KvInput.Latent input =
        new KvInput.Latent(numbers(DType.FP32, 3, RANK), numbers(DType.FP32, 3, ROTARY));

    new LatentCacheWriter(cache).write(input, slots(47, 16, 31));

    assertThat(row(cache, 47)[0]).isEqualTo(at(input.ckv(), 0, 0));
    assertThat(row(cache, 16)[RANK]).isEqualTo(at(input.kPe(), 1, 0));
    assertThat(row(cache, 31)[RANK - 1]).isEqualTo(at(input.ckv(), 2, RANK - 1));
  }

  @Test
  void stridesOfTheInputAreFollowed() {
    KvCacheView cache = cache(KvCacheDtype.FLOAT32);
    TensorView both = numbers(DType.FP32, 2, RANK + ROTARY);
    long[] strides = {RANK + ROTARY, 1};
    KvInput.Latent input =
        new KvInput.Latent(
            TensorView.of(both.data(), DType.FP32, Device.HOST, new long[] {2, RANK}, strides),
            TensorView.of(
                both.data().asSlice((long) RANK * Float.BYTES),
                DType.FP32,
                Device.HOST,
                new long[] {2, ROTARY},
                strides));

    new LatentCacheWriter(cache).write(input, slots(20, 21));

    for (int d = 0; d < RANK + ROTARY; d++) {
      assertThat(row(cache, 21)[d]).isEqualTo(at(both, 1, d));
    }
  }

  @Test
  void aQuantisedCacheDividesByItsScale() {
    KvCacheView cache =
        cache(LatentKvLayout.ROWS, KvCacheDtype.FP8_E4M3, new KvScales.PerTensor(0.5f, 0.5f));
    TensorView ones = numbers(DType.FP32, 1, RANK);
    for (int d = 0; d < RANK; d++) {
      ones.data().setAtIndex(ValueLayout.JAVA_FLOAT, d, 3);
    }

    new LatentCacheWriter(cache)
        .write(new KvInput.Latent(ones, numbers(DType.FP32, 1, ROTARY)), slots(16));

    long stored = cache.blockOffset(1);
    assertThat(NarrowFloats.load(cache.memory(), stored, DType.FP8_E4M3)).isEqualTo(6);
    assertThat(row(cache, 16)[0]).isEqualTo(3);
  }

  @Test
  void nothingIsWrittenWhereASlotLiesOutside() {
    KvCacheView cache = cache(KvCacheDtype.FLOAT32);
    KvInput.Latent input =
        new KvInput.Latent(numbers(DType.FP32, 2, RANK), numbers(DType.FP32, 2, ROTARY));

    assertThatThrownBy(() -> new LatentCacheWriter(cache).write(input, slots(16, 48)))
        .isInstanceOfSatisfying(
            BifocalException.class,
            e -> assertThat(e.code()).isEqualTo(ErrorCode.SLOT_OUT_OF_RANGE));
    assertThat(row(cache, 16)).containsOnly(0);
  }

  @ParameterizedTest(name = "latent {0}, rotary {1}, tokens {2}: {3}")
  @CsvSource({
    "256, 64, 2, SHAPE_MISMATCH",
    "512, 32, 2, SHAPE_MISMATCH",
    "512, 64, 3, SHAPE_MISMATCH",
  })
  void inputOfAnotherShapeIsRefused(int latent, int rotary, int tokens, ErrorCode code) {
    KvInput.Latent input =
        new KvInput.Latent(
            numbers(DType.FP32, tokens, latent), numbers(DType.FP32, tokens, rotary));
    LatentCacheWriter writer = new LatentCacheWriter(cache(KvCacheDtype.FLOAT32));

    assertThatThrownBy(() -> writer.write(input, slots(16, 17)))
        .isInstanceOfSatisfying(BifocalException.class, e -> assertThat(e.code()).isEqualTo(code));
  }

  @Test
  void packedRecordsAreRefusedBeforeAnyStep() {
    KvCacheView cache = cache(LatentKvLayout.FP8_DS_MLA, KvCacheDtype.FP8_DS_MLA, KvScales.ONE);

    assertThatThrownBy(() -> new LatentCacheWriter(cache))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining("records of fp8_ds_mla are not written here");
  }
}
