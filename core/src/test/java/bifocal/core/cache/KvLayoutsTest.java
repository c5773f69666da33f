package bifocal.core.cache;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import bifocal.core.error.ErrorCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

class KvLayoutsTest {
  private static final long SEED = 7;
  private static final int BLOCK = 4;
  private static final int HEADS = 3;
  private static final int HEAD = 5;
  private static final int HEAD_V = 7;

  static Stream<PlainKvLayout> layouts() {
    return Stream.of(KvLayouts.NHD, KvLayouts.HND);
  }

  @Test
  void nhdIsAHostTensorOfTokensThenHeads() {
    KvCacheSpec spec = spec(KvLayouts.NHD, KvCacheDtype.FLOAT32, KvScales.ONE);
    MemorySegment block = record(spec);
    KvLayouts.NHD.write(spec, block, 2, 1, numbers(HEAD, 1), numbers(HEAD_V, 100));
    assertThat(block.getAtIndex(ValueLayout.JAVA_FLOAT, (2 * HEADS + 1) * HEAD + 3)).isEqualTo(4f);
    assertThat(
            block.getAtIndex(
                ValueLayout.JAVA_FLOAT, BLOCK * HEADS * HEAD + (2 * HEADS + 1) * HEAD_V + 6))
        .isEqualTo(106f);
  }

  @Test
  void hndIsAHostTensorOfHeadsThenTokens() {
    KvCacheSpec spec = spec(KvLayouts.HND, KvCacheDtype.FLOAT32, KvScales.ONE);
    MemorySegment block = record(spec);
    KvLayouts.HND.write(spec, block, 2, 1, numbers(HEAD, 1), numbers(HEAD_V, 100));
    assertThat(block.getAtIndex(ValueLayout.JAVA_FLOAT, (1 * BLOCK + 2) * HEAD + 3)).isEqualTo(4f);
    assertThat(
            block.getAtIndex(
                ValueLayout.JAVA_FLOAT, BLOCK * HEADS * HEAD + (1 * BLOCK + 2) * HEAD_V + 6))
        .isEqualTo(106f);
  }

  @ParameterizedTest
  @MethodSource("layouts")
  void theStridesLeadToTheElementsThatWereWritten(PlainKvLayout layout) {
    KvCacheSpec spec = spec(layout, KvCacheDtype.FLOAT32, KvScales.ONE);
    MemorySegment block = record(spec);
    for (int token = 0; token < BLOCK; token++) {
      for (int head = 0; head < HEADS; head++) {
        float mark = 1000 * token + 100 * head;
        layout.write(spec, block, token, head, numbers(HEAD, mark), numbers(HEAD_V, -mark));
      }
    }
    for (int token = 0; token < BLOCK; token++) {
      for (int head = 0; head < HEADS; head++) {
        long key = token * layout.keyTokenStride(spec) + head * layout.keyHeadStride(spec);
        long value =
            layout.valueOffset(spec)
                + token * layout.valueTokenStride(spec)
                + head * layout.valueHeadStride(spec);
        assertThat(block.get(ValueLayout.JAVA_FLOAT, key + 4))
            .isEqualTo(1000f * token + 100f * head + 1);
        assertThat(block.get(ValueLayout.JAVA_FLOAT, value + 8))
            .isEqualTo(-1000f * token - 100f * head + 2);
      }
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"FLOAT32", "FLOAT16", "BFLOAT16", "FP8_E4M3", "FP8_E5M2"})
  void aRecordHasNoGaps(KvCacheDtype dtype) {
    KvCacheSpec spec = spec(KvLayouts.NHD, dtype, KvScales.ONE);
    long element = dtype.elementType().get().bytes();
    assertThat(spec.blockBytes()).isEqualTo(BLOCK * HEADS * (HEAD + HEAD_V) * element);
    assertThat(KvLayouts.NHD.valueOffset(spec)).isEqualTo(BLOCK * HEADS * HEAD * element);
  }

  @ParameterizedTest
  @MethodSource("layouts")
  void everyPlaceOfARecordIsItsOwn(PlainKvLayout layout) {
    for (KvCacheDtype dtype :
        new KvCacheDtype[] {
          KvCacheDtype.FLOAT32,
          KvCacheDtype.FLOAT16,
          KvCacheDtype.BFLOAT16,
          KvCacheDtype.FP8_E4M3,
          KvCacheDtype.FP8_E5M2,
          KvCacheDtype.INT8_PER_TOKEN_HEAD,
          KvCacheDtype.FP8_PER_TOKEN_HEAD
        }) {
      requireRoundTrip(layout, dtype);
    }
  }

  private static void requireRoundTrip(PlainKvLayout layout, KvCacheDtype dtype) {
    KvCacheSpec spec = spec(layout, dtype, KvScales.ONE);
    Random random = new Random(SEED);
    MemorySegment block = record(spec);
    float[][][] keys = new float[BLOCK][HEADS][];
    float[][][] values = new float[BLOCK][HEADS][];
    for (int token = 0; token < BLOCK; token++) {
      for (int head = 0; head < HEADS; head++) {
        keys[token][head] = random(random, HEAD);
        values[token][head] = random(random, HEAD_V);
        layout.write(spec, block, token, head, keys[token][head], values[token][head]);
      }
    }
    for (int token = 0; token < BLOCK; token++) {
      for (int head = 0; head < HEADS; head++) {
        float[] key = new float[HEAD];
        float[] value = new float[HEAD_V];
        layout.readKey(spec, block, token, head, key);
        layout.readValue(spec, block, token, head, value);
        requireClose(dtype, key, keys[token][head]);
        requireClose(dtype, value, values[token][head]);
      }
    }
  }

  private static void requireClose(KvCacheDtype dtype, float[] read, float[] written) {
    float largest = 0;
    for (float number : written) {
      largest = Math.max(largest, Math.abs(number));
    }
    for (int d = 0; d < read.length; d++) {
      float halfStep =
          switch (dtype) {
            case FLOAT32 -> 0;
            case FLOAT16 -> Math.abs(written[d]) * 0x1p-11f;
            case BFLOAT16 -> Math.abs(written[d]) * 0x1p-8f;
            case FP8_E4M3 -> Math.max(Math.abs(written[d]) * 0x1p-4f, 0x1p-10f);
            case FP8_E5M2 -> Math.max(Math.abs(written[d]) * 0x1p-3f, 0x1p-17f);
            case FP8_PER_TOKEN_HEAD ->
                Math.max(Math.abs(written[d]) * 0x1p-4f, 0x1p-10f * largest / 448) * 1.001f;
            case INT8_PER_TOKEN_HEAD -> largest / 127 / 2 * 1.001f;
            default -> throw new AssertionError(dtype);
          };
      assertThat(read[d])
          .as("%s, element %d of %s, seed %d", dtype, d, Arrays.toString(written), SEED)
          .isCloseTo(written[d], within(halfStep));
    }
  }

  @Test
  void storedNumbersAreDividedByTheContractsScales() {
    KvScales scales = new KvScales.PerHead(new float[] {1, 2, 4}, new float[] {8, 16, 32});
    KvCacheSpec spec = spec(KvLayouts.NHD, KvCacheDtype.FP8_E4M3, scales);
    KvCacheSpec unscaled = spec(KvLayouts.NHD, KvCacheDtype.FP8_E4M3, KvScales.ONE);
    MemorySegment block = record(spec);
    float[] key = {448 * 4, 4, 0, -4, -448 * 4};
    KvLayouts.NHD.write(spec, block, 0, 2, key, numbers(HEAD_V, 32));
    float[] stored = new float[HEAD];
    KvLayouts.NHD.readKey(unscaled, block, 0, 2, stored);
    assertThat(stored).containsExactly(448, 1, 0, -1, -448);
    float[] read = new float[HEAD];
    KvLayouts.NHD.readKey(spec, block, 0, 2, read);
    assertThat(read).containsExactly(key);
  }

  @Test
  void aTokensOwnScaleIsItsLargestMagnitudeOverTheLargestNumber() {
    KvCacheSpec spec = spec(KvLayouts.HND, KvCacheDtype.INT8_PER_TOKEN_HEAD, KvScales.ONE);
    MemorySegment block = record(spec);
    float[] value = {0, 0, 0, 0, 0, 0, 25.4f};
    KvLayouts.HND.write(spec, block, 3, 1, new float[] {-254, 2, 3, 127, 0}, value);
    assertThat(
            block.get(ValueLayout.JAVA_FLOAT_UNALIGNED, KvLayouts.HND.keyScaleOffset(spec, 3, 1)))
        .isEqualTo(2f);
    assertThat(
            block.get(ValueLayout.JAVA_FLOAT_UNALIGNED, KvLayouts.HND.valueScaleOffset(spec, 3, 1)))
        .isEqualTo(25.4f / 127);
    float[] key = new float[HEAD];
    KvLayouts.HND.readKey(spec, block, 3, 1, key);
    assertThat(key).as("1.5 and 63.5 round to even").containsExactly(-254, 2, 4, 128, 0);
  }

  @Test
  void aTokenOfZerosReadsAsZeros() {
    KvCacheSpec spec = spec(KvLayouts.NHD, KvCacheDtype.FP8_PER_TOKEN_HEAD, KvScales.ONE);
    MemorySegment block = record(spec);
    block.fill((byte) 0x3C);
    KvLayouts.NHD.write(spec, block, 0, 0, new float[HEAD], new float[HEAD_V]);
    float[] key = numbers(HEAD, 1);
    KvLayouts.NHD.readKey(spec, block, 0, 0, key);
    assertThat(key).containsOnly(0);
  }

  @Test
  void notANumberStaysVisibleInAQuantisedToken() {
    KvCacheSpec spec = spec(KvLayouts.NHD, KvCacheDtype.INT8_PER_TOKEN_HEAD, KvScales.ONE);
    MemorySegment block = record(spec);
    KvLayouts.NHD.write(spec, block, 0, 0, new float[] {1, Float.NaN, 1, 1, 1}, new float[HEAD_V]);
    float[] key = new float[HEAD];
    KvLayouts.NHD.readKey(spec, block, 0, 0, key);
    assertThat(key[1]).isNaN();
  }

  @Test
  void aRecordOfNumbersWithTheirScalesIsAsLongAsBoth() {
    KvCacheSpec spec = spec(KvLayouts.NHD, KvCacheDtype.INT8_PER_TOKEN_HEAD, KvScales.ONE);
    int entries = BLOCK * HEADS;
    assertThat(spec.blockBytes()).isEqualTo(entries * (HEAD + HEAD_V) + 2 * 4 * entries);
    assertThat(KvLayouts.NHD.valueScaleOffset(spec, BLOCK - 1, HEADS - 1) + 4)
        .isEqualTo(spec.blockBytes());
  }

  @Test
  void numbersThatAreNotPlainElementsAreObjectedTo() {
    KvCacheSpec spec = spec(KvLayouts.NHD, KvCacheDtype.NVFP4, KvScales.ONE);
    assertThat(KvLayouts.NHD.objection(spec).get()).contains("nvfp4");
    assertRefused(ErrorCode.KV_INCOMPATIBLE, spec::blockBytes);
  }

  @Test
  void aTypeWithoutScalesOfItsOwnHasNoPlaceForThem() {
    KvCacheSpec spec = spec(KvLayouts.NHD, KvCacheDtype.BFLOAT16, KvScales.ONE);
    assertRefused(ErrorCode.KV_INCOMPATIBLE, () -> KvLayouts.NHD.keyScaleOffset(spec, 0, 0));
  }

  private static KvCacheSpec spec(KvLayout layout, KvCacheDtype dtype, KvScales scales) {
    return new KvCacheSpec(layout, dtype, BLOCK, HEADS, HEAD, HEAD_V, scales);
  }

  private static MemorySegment record(KvCacheSpec spec) {
    return MemorySegment.ofArray(new float[Math.toIntExact(Math.ceilDiv(spec.blockBytes(), 4))]);
  }

  private static float[] numbers(int count, float first) {
    float[] numbers = new float[count];
    for (int i = 0; i < count; i++) {
      numbers[i] = first + i;
    }
    return numbers;
  }

  private static float[] random(Random random, int count) {
    float[] numbers = new float[count];
    for (int i = 0; i < count; i++) {
      numbers[i] = (float) random.nextGaussian() * 3;
    }
    return numbers;
  }
}
