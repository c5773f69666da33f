package bifocal.core.tensor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Random;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class NarrowFloatsTest {
  private static final long SEED = 20_26;

  @ParameterizedTest
  @CsvSource({
    "0x00, 0",
    "0x01, 0.001953125",
    "0x07, 0.013671875",
    "0x08, 0.015625",
    "0x38, 1",
    "0x39, 1.125",
    "0x7E, 448",
    "0xFE, -448",
    "0xB8, -1"
  })
  void e4m3BitsMean(String bits, float value) {
    assertThat(NarrowFloats.fromE4m3((byte) (int) Integer.decode(bits))).isEqualTo(value);
    assertThat(NarrowFloats.toE4m3(value)).isEqualTo((byte) (int) Integer.decode(bits));
  }

  @ParameterizedTest
  @CsvSource({
    "0x01, 0.0000152587890625",
    "0x04, 0.00006103515625",
    "0x3C, 1",
    "0x3D, 1.25",
    "0x7B, 57344",
    "0xFB, -57344"
  })
  void e5m2BitsMean(String bits, float value) {
    assertThat(NarrowFloats.fromE5m2((byte) (int) Integer.decode(bits))).isEqualTo(value);
    assertThat(NarrowFloats.toE5m2(value)).isEqualTo((byte) (int) Integer.decode(bits));
  }

  @Test
  void theZerosKeepTheirSign() {
    assertThat(NarrowFloats.toE4m3(-0f)).isEqualTo((byte) 0x80);
    assertThat(NarrowFloats.toE5m2(-0f)).isEqualTo((byte) 0x80);
    assertThat(NarrowFloats.toBf16(-0f)).isEqualTo((short) 0x8000);
    assertThat(Float.floatToRawIntBits(NarrowFloats.fromE4m3((byte) 0x80)))
        .isEqualTo(Float.floatToRawIntBits(-0f));
  }

  @Test
  void notANumberStaysNotANumber() {
    for (float nan : new float[] {Float.NaN, Float.intBitsToFloat(0xFF800001)}) {
      assertThat(NarrowFloats.fromE4m3(NarrowFloats.toE4m3(nan))).isNaN();
      assertThat(NarrowFloats.fromE5m2(NarrowFloats.toE5m2(nan))).isNaN();
      assertThat(NarrowFloats.fromBf16(NarrowFloats.toBf16(nan))).isNaN();
      assertThat(NarrowFloats.fromFp16(NarrowFloats.toFp16(nan))).isNaN();
    }
  }

  @Test
  void eightBitFormatsSaturateAndWiderOnesOverflow() {
    assertThat(NarrowFloats.fromE4m3(NarrowFloats.toE4m3(1e9f))).isEqualTo(448f);
    assertThat(NarrowFloats.fromE4m3(NarrowFloats.toE4m3(Float.NEGATIVE_INFINITY)))
        .isEqualTo(-448f);
    assertThat(NarrowFloats.fromE5m2(NarrowFloats.toE5m2(Float.POSITIVE_INFINITY)))
        .isEqualTo(57344f);
    assertThat(NarrowFloats.fromFp16(NarrowFloats.toFp16(65520f)))
        .isEqualTo(Float.POSITIVE_INFINITY);
    assertThat(NarrowFloats.fromBf16(NarrowFloats.toBf16(Float.MAX_VALUE)))
        .isEqualTo(Float.POSITIVE_INFINITY);
  }

  @Test
  void everyFormatRoundsToTheNearestValueWithTiesToEven() {
    requireNearest("e4m3", bits(256, b -> NarrowFloats.fromE4m3((byte) b)), NarrowFloats::toE4m3);
    requireNearest("e5m2", bits(256, b -> NarrowFloats.fromE5m2((byte) b)), NarrowFloats::toE5m2);
    requireNearest(
        "bf16", bits(65536, b -> NarrowFloats.fromBf16((short) b)), NarrowFloats::toBf16);
    requireNearest(
        "fp16", bits(65536, b -> NarrowFloats.fromFp16((short) b)), NarrowFloats::toFp16);
  }

  @Test
  void int8RoundsTiesToEvenAndLeavesOutTheLowestValue() {
    assertThat(NarrowFloats.toInt8(0.5f)).isEqualTo((byte) 0);
    assertThat(NarrowFloats.toInt8(1.5f)).isEqualTo((byte) 2);
    assertThat(NarrowFloats.toInt8(-2.5f)).isEqualTo((byte) -2);
    assertThat(NarrowFloats.toInt8(-1000f)).isEqualTo((byte) -127);
    assertThat(NarrowFloats.toInt8(Float.POSITIVE_INFINITY)).isEqualTo((byte) 127);
  }

  @ParameterizedTest
  @EnumSource(names = {"FP32", "FP16", "BF16", "FP8_E4M3", "FP8_E5M2", "INT8"})
  void anElementIsLoadedAsStored(DType type) {
    MemorySegment memory = MemorySegment.ofArray(new byte[9]);
    NarrowFloats.store(memory, 5, type, 3f);
    assertThat(NarrowFloats.load(memory, 5, type)).isEqualTo(3f);
  }

  @ParameterizedTest
  @EnumSource(names = {"UINT8", "INT32", "INT64"})
  void aTypeWithoutFractionsIsRefused(DType type) {
    MemorySegment memory = MemorySegment.ofArray(new byte[8]);
    assertThatThrownBy(() -> NarrowFloats.load(memory, 0, type))
        .isInstanceOfSatisfying(
            BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.DTYPE_MISMATCH));
  }

  private interface Encoder {
    int encode(float value);
  }

  /** Values that are finite and not negative, ascending: their index is their bits. */
  private static float[] bits(int codes, IntFunction<Float> decode) {
    float[] values = new float[codes / 2];
    int count = 0;
    while (count < codes / 2 && Float.isFinite(decode.apply(count))) {
      values[count] = decode.apply(count);
      count++;
    }
    return Arrays.copyOf(values, count);
  }

  private static void requireNearest(String format, float[] grid, Encoder encoder) {
    int signBit = grid.length > 256 ? 0x8000 : 0x80;
    IntStream.range(0, grid.length - 1)
        .forEach(
            lower -> {
              float middle = (float) (((double) grid[lower] + grid[lower + 1]) / 2);
              int even = lower % 2 == 0 ? lower : lower + 1;
              check(format, encoder, grid[lower], lower, signBit);
              check(format, encoder, Math.nextDown(middle), lower, signBit);
              check(format, encoder, Math.nextUp(middle), lower + 1, signBit);
              check(format, encoder, middle, even, signBit);
            });
    Random random = new Random(SEED);
    for (int i = 0; i < 20_000; i++) {
      int lower = random.nextInt(grid.length - 1);
      float value = grid[lower] + random.nextFloat() * (grid[lower + 1] - grid[lower]);
      double toLower = (double) value - grid[lower];
      double toUpper = (double) grid[lower + 1] - value;
      if (toLower != toUpper) {
        check(format, encoder, value, toLower < toUpper ? lower : lower + 1, signBit);
      }
    }
  }

  private static void check(String format, Encoder encoder, float value, int wanted, int signBit) {
    int mask = 2 * signBit - 1;
    assertThat(encoder.encode(value) & mask)
        .as("%s of %s (seed %d)", format, value, SEED)
        .isEqualTo(wanted);
    assertThat(encoder.encode(-value) & mask)
        .as("%s of -%s (seed %d)", format, value, SEED)
        .isEqualTo(wanted | signBit);
  }
}
