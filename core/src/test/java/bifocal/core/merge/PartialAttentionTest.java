package bifocal.core.merge;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import bifocal.core.device.Device;
import bifocal.core.error.ErrorCode;
import bifocal.core.merge.PartialAttention.LogBase;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.NarrowFloats;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PartialAttentionTest {
  private static final long SEED = 17;

  @ParameterizedTest
  @CsvSource({
    "NaN, -Infinity, 0, 3.0, 0.7, 9, 3.0, 0.7",
    "9.0, Infinity, 0, 3.0, 0.7, 9, 3.0, 0.7",
    "NaN, 5.0, 0, 3.0, 0.7, 9, 3.0, 0.7",
    "NaN, NaN, 0, 3.0, 0.7, 9, 3.0, 0.7",
    "9.0, -Infinity, 4, 3.0, 0.7, 9, 3.0, 0.7",
    "9.0, Infinity, 4, 3.0, 0.7, 9, 3.0, 0.7",
    "1.0, -Infinity, 0, 2.0, -Infinity, 0, 0.0, -Infinity",
    "1.0, -Infinity, 4, 2.0, -Infinity, 4, 0.0, -Infinity"
  })
  void aPartWithoutKeysCountsForNothingWhateverItHolds(
      float out,
      float lse,
      int keys,
      float otherOut,
      float otherLse,
      int otherKeys,
      float mergedOut,
      float mergedLse) {
    PartialAttention empty = one(out, lse, keys);
    PartialAttention other = one(otherOut, otherLse, otherKeys);
    for (boolean swapped : new boolean[] {false, true}) {
      TensorView resultOut = tensor(1, 1, 1);
      TensorView resultLse = logs(1, 1);
      if (swapped) {
        other.mergeInto(empty, resultOut, resultLse);
      } else {
        empty.mergeInto(other, resultOut, resultLse);
      }
      assertThat(value(resultOut, 0)).isEqualTo(mergedOut);
      assertThat(value(resultLse, 0)).isEqualTo(mergedLse);
    }
  }

  @Test
  void twoPartsMakeTheAttentionOverAllKeys() {
    Random random = new Random(SEED);
    for (int run = 0; run < 200; run++) {
      double[] logits = random.doubles(12, -300, 300).toArray();
      double[] values = random.doubles(12, -2, 2).toArray();
      int cut = random.nextInt(13);
      TensorView out = tensor(1, 1, 1);
      TensorView lse = logs(1, 1);
      attention(logits, values, 0, cut).mergeInto(attention(logits, values, cut, 12), out, lse);
      PartialAttention whole = attention(logits, values, 0, 12);
      assertThat(value(out, 0))
          .as("run %d of seed %d, cut at %d", run, SEED, cut)
          .isCloseTo(value(whole.out(), 0), within(1e-5f));
      assertThat(value(lse, 0)).isCloseTo(value(whole.lse(), 0), within(1e-4f));
    }
  }

  @Test
  void emptinessIsDecidedRequestByRequest() {
    PartialAttention first =
        new PartialAttention(
            filled(tensor(2, 1, 1), 4f, Float.NaN),
            filled(logs(2, 1), 1f, 77f),
            LogBase.E,
            new int[] {3, 0});
    PartialAttention second =
        new PartialAttention(
            filled(tensor(2, 1, 1), 8f, 6f),
            filled(logs(2, 1), 1f, 2f),
            LogBase.E,
            new int[] {3, 5});
    TensorView out = tensor(2, 1, 1);
    TensorView lse = logs(2, 1);
    first.mergeInto(second, out, lse);
    assertThat(value(out, 0)).isEqualTo(6f);
    assertThat(value(lse, 0)).isCloseTo((float) (1 + Math.log(2)), within(1e-6f));
    assertThat(value(out, 1)).isEqualTo(6f);
    assertThat(value(lse, 1)).isEqualTo(2f);
  }

  @Test
  void basesAreConvertedAndNotMixed() {
    PartialAttention natural = one(4f, 3f, 1);
    PartialAttention binary =
        new PartialAttention(
            filled(tensor(1, 1, 1), 8f),
            filled(logs(1, 1), (float) (3 / Math.log(2))),
            LogBase.TWO,
            new int[] {1});
    TensorView out = tensor(1, 1, 1);
    TensorView lse = logs(1, 1);
    natural.mergeInto(binary, out, lse);
    assertThat(value(out, 0)).isCloseTo(6f, within(1e-5f));
    assertThat(value(lse, 0)).isCloseTo((float) (3 + Math.log(2)), within(1e-5f));
  }

  @Test
  void bothPartsAndTheResultMayHaveTheirOwnStridesAndTypes() {
    long[] shape = {2, 3, 4};
    TensorView dense = tensor(2, 3, 4);
    TensorView strided =
        TensorView.of(
            MemorySegment.ofArray(new short[200]),
            DType.BF16,
            Device.HOST,
            shape,
            new long[] {5, 11, 40});
    TensorView transposed =
        TensorView.of(
            MemorySegment.ofArray(new float[6]),
            DType.FP32,
            Device.HOST,
            new long[] {2, 3},
            new long[] {1, 2});
    for (int q = 0; q < 2; q++) {
      for (int h = 0; h < 3; h++) {
        for (int d = 0; d < 4; d++) {
          set(dense, q, h, d, 16 * q + 4 * h + d);
          set(strided, q, h, d, 100 + 16 * q + 4 * h + d);
        }
        transposed.data().setAtIndex(ValueLayout.JAVA_FLOAT, q + 2L * h, q + h);
      }
    }
    PartialAttention first =
        new PartialAttention(
            dense, filled(logs(2, 3), 0, 1, 2, 1, 2, 3), LogBase.E, new int[] {1, 1});
    PartialAttention second =
        new PartialAttention(strided, transposed, LogBase.E, new int[] {1, 1});
    TensorView out =
        TensorView.of(
            MemorySegment.ofArray(new short[100]),
            DType.FP16,
            Device.HOST,
            shape,
            new long[] {40, 12, 1});
    first.mergeInto(second, out, logs(2, 3));
    for (int q = 0; q < 2; q++) {
      for (int h = 0; h < 3; h++) {
        for (int d = 0; d < 4; d++) {
          assertThat(get(out, q, h, d)).as("%d %d %d", q, h, d).isEqualTo(50f + 16 * q + 4 * h + d);
        }
      }
    }
  }

  @Test
  void theResultMayLieOverAPart() {
    PartialAttention first = one(4f, 1f, 1);
    first.mergeInto(one(8f, 1f, 1), first.out(), first.lse());
    assertThat(value(first.out(), 0)).isEqualTo(6f);
  }

  @Test
  void aRowThatIsNotANumberSaysSo() {
    TensorView out = tensor(1, 1, 1);
    TensorView lse = logs(1, 1);
    one(4f, Float.NaN, 3).mergeInto(one(8f, 1f, 3), out, lse);
    assertThat(value(out, 0)).isNaN();
    assertThat(value(lse, 0)).isNaN();
  }

  @Test
  void shapesThatDoNotFitAreRefused() {
    assertRefused(
        ErrorCode.SHAPE_MISMATCH,
        () -> new PartialAttention(tensor(2, 1, 1), logs(1, 1), LogBase.E, new int[2]));
    assertRefused(
        ErrorCode.SHAPE_MISMATCH,
        () -> new PartialAttention(tensor(2, 1, 1), logs(2, 1), LogBase.E, new int[1]));
    assertRefused(
        ErrorCode.DTYPE_MISMATCH,
        () ->
            new PartialAttention(
                TensorView.ofHost(MemorySegment.ofArray(new int[1]), DType.INT32, 1, 1, 1),
                logs(1, 1),
                LogBase.E,
                new int[1]));
    PartialAttention part = one(1, 1, 1);
    assertRefused(
        ErrorCode.SHAPE_MISMATCH,
        () ->
            part.mergeInto(
                new PartialAttention(tensor(2, 1, 1), logs(2, 1), LogBase.E, new int[2]),
                tensor(1, 1, 1),
                logs(1, 1)));
    assertRefused(
        ErrorCode.SHAPE_MISMATCH, () -> part.mergeInto(part, tensor(1, 1, 2), logs(1, 1)));
    assertRefused(
        ErrorCode.SHAPE_MISMATCH, () -> part.mergeInto(part, tensor(1, 1, 1), logs(1, 2)));
  }

  private static PartialAttention attention(double[] logits, double[] values, int from, int to) {
    double most = Double.NEGATIVE_INFINITY;
    for (int k = from; k < to; k++) {
      most = Math.max(most, logits[k]);
    }
    double sum = 0;
    double weighted = 0;
    for (int k = from; k < to; k++) {
      sum += Math.exp(logits[k] - most);
      weighted += Math.exp(logits[k] - most) * values[k];
    }
    return one((float) (weighted / sum), (float) (most + Math.log(sum)), to - from);
  }

  private static PartialAttention one(float out, float lse, int keys) {
    return new PartialAttention(
        filled(tensor(1, 1, 1), out), filled(logs(1, 1), lse), LogBase.E, new int[] {keys});
  }

  private static TensorView tensor(int queries, int heads, int size) {
    return TensorView.ofHost(
        MemorySegment.ofArray(new float[queries * heads * size]), DType.FP32, queries, heads, size);
  }

  private static TensorView logs(int queries, int heads) {
    return TensorView.ofHost(
        MemorySegment.ofArray(new float[queries * heads]), DType.FP32, queries, heads);
  }

  private static TensorView filled(TensorView tensor, float... values) {
    for (int i = 0; i < values.length; i++) {
      tensor.data().setAtIndex(ValueLayout.JAVA_FLOAT, i, values[i]);
    }
    return tensor;
  }

  private static float value(TensorView tensor, int i) {
    return tensor.data().getAtIndex(ValueLayout.JAVA_FLOAT, i);
  }

  private static long offset(TensorView tensor, int q, int h, int d) {
    return (q * tensor.stride(0) + h * tensor.stride(1) + d * tensor.stride(2))
        * tensor.dtype().bytes();
  }

  private static void set(TensorView tensor, int q, int h, int d, float value) {
    NarrowFloats.store(tensor.data(), offset(tensor, q, h, d), tensor.dtype(), value);
  }

  private static float get(TensorView tensor, int q, int h, int d) {
    return NarrowFloats.load(tensor.data(), offset(tensor, q, h, d), tensor.dtype());
  }

  /** Chunks one after the other, of which any may be empty, first, last and between. */
  @Test
  void chunksInARowMayBeEmptyAnywhere() {
    Random random = new Random(SEED);
    for (int run = 0; run < 200; run++) {
      double[] logits = random.doubles(12, -300, 300).toArray();
      double[] values = random.doubles(12, -2, 2).toArray();
      int[] cuts = {0, random.nextInt(13), random.nextInt(13), random.nextInt(13), 12};
      java.util.Arrays.sort(cuts);
      TensorView out = filled(tensor(1, 1, 1), Float.NaN);
      TensorView lse = filled(logs(1, 1), Float.POSITIVE_INFINITY);
      PartialAttention sum = new PartialAttention(out, lse, LogBase.E, new int[] {0});
      for (int i = 1; i < cuts.length; i++) {
        PartialAttention chunk =
            cuts[i] == cuts[i - 1]
                ? one(Float.NaN, 88f, 0)
                : attention(logits, values, cuts[i - 1], cuts[i]);
        sum.mergeInto(chunk, out, lse);
        sum = new PartialAttention(out, lse, LogBase.E, new int[] {cuts[i]});
      }
      PartialAttention whole = attention(logits, values, 0, 12);
      assertThat(value(out, 0))
          .as("run %d of seed %d, cuts %s", run, SEED, java.util.Arrays.toString(cuts))
          .isCloseTo(value(whole.out(), 0), within(1e-5f));
      assertThat(value(lse, 0)).isCloseTo(value(whole.lse(), 0), within(1e-4f));
    }
  }

  /** Emptiness does not depend on the logarithm's base or on the output's type. */
  @ParameterizedTest
  @CsvSource({"E, FP32", "TWO, FP32", "E, FP16", "TWO, BF16"})
  void anEmptyPartCountsForNothingInAnyBaseAndType(LogBase base, DType type) {
    for (float log : new float[] {Float.NEGATIVE_INFINITY, Float.POSITIVE_INFINITY, 5, Float.NaN}) {
      TensorView garbage = TensorView.ofHost(MemorySegment.ofArray(new byte[8]), type, 1, 1, 1);
      garbage.data().fill((byte) 0xFF);
      PartialAttention empty =
          new PartialAttention(garbage, filled(logs(1, 1), log), base, new int[] {0});
      TensorView out = tensor(1, 1, 1);
      TensorView lse = logs(1, 1);
      empty.mergeInto(one(3f, 0.7f, 9), out, lse);
      assertThat(value(out, 0)).isEqualTo(3f);
      assertThat(value(lse, 0)).isEqualTo(0.7f);
      one(3f, 0.7f, 9).mergeInto(empty, out, lse);
      assertThat(value(out, 0)).isEqualTo(3f);
      assertThat(value(lse, 0)).isEqualTo(0.7f);
    }
  }

  /** Two sums so far apart, or so far from zero, that a factor underflows or would overflow. */
  @Test
  void sumsAtTheEndsOfTheScaleNeitherOverflowNorVanish() {
    TensorView out = tensor(1, 1, 1);
    TensorView lse = logs(1, 1);
    one(1f, -3e38f, 2).mergeInto(one(3f, -3e38f, 2), out, lse);
    assertThat(value(out, 0)).isEqualTo(2f);
    one(1f, 3e38f, 2).mergeInto(one(3f, 3e38f, 2), out, lse);
    assertThat(value(out, 0)).isEqualTo(2f);
    one(1f, -3e38f, 2).mergeInto(one(3f, 3e38f, 2), out, lse);
    assertThat(value(out, 0)).isEqualTo(3f);
    assertThat(value(lse, 0)).isEqualTo(3e38f);
  }
}
