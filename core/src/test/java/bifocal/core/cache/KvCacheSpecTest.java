package bifocal.core.cache;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class KvCacheSpecTest {

  @Test
  void aContractNamesItsTypeAndPositiveSizes() {
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> spec(KvCacheDtype.AUTO, 16, 1, 8, 8));
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> spec(KvCacheDtype.FLOAT16, 0, 1, 8, 8));
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> spec(KvCacheDtype.FLOAT16, 16, 0, 8, 8));
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> spec(KvCacheDtype.FLOAT16, 16, 1, -8, 8));
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> spec(KvCacheDtype.FLOAT16, 16, 1, 8, 0));
  }

  @Test
  void tokensFillWholeBlocks() {
    KvCacheSpec spec = spec(KvCacheDtype.FLOAT16, 16, 1, 8, 8);
    assertThat(spec.blocksFor(0)).isZero();
    assertThat(spec.blocksFor(1)).isEqualTo(1);
    assertThat(spec.blocksFor(16)).isEqualTo(1);
    assertThat(spec.blocksFor(17)).isEqualTo(2);
  }

  @Test
  void scalesPerHeadAreAsManyAsHeads() {
    KvScales two = new KvScales.PerHead(new float[] {1, 2}, new float[] {1, 2});
    assertRefused(
        ErrorCode.SHAPE_MISMATCH,
        () -> new KvCacheSpec(KvLayouts.NHD, KvCacheDtype.FP8_E4M3, 16, 3, 8, 8, two));
  }

  @ParameterizedTest
  @ValueSource(floats = {Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY})
  void aScaleIsANumber(float scale) {
    assertRefused(ErrorCode.NOT_FINITE, () -> new KvScales.PerTensor(scale, 1));
    assertRefused(ErrorCode.NOT_FINITE, () -> new KvScales.PerTensor(1, scale));
    assertRefused(
        ErrorCode.NOT_FINITE,
        () -> new KvScales.PerHead(new float[] {1, scale}, new float[] {1, 1}));
  }

  @ParameterizedTest
  @ValueSource(floats = {0, -0f, -1})
  void aScaleIsPositive(float scale) {
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> new KvScales.PerTensor(scale, 1));
    assertRefused(
        ErrorCode.INVALID_PARAMETER,
        () -> new KvScales.PerHead(new float[] {1}, new float[] {scale}));
  }

  @Test
  void scalesOfOneAreNoScales() {
    assertThat(KvScales.ONE.isOne()).isTrue();
    assertThat(new KvScales.PerHead(new float[] {1, 1}, new float[] {1, 1}).isOne()).isTrue();
    assertThat(new KvScales.PerHead(new float[] {1, 1}, new float[] {1, 2}).isOne()).isFalse();
    assertRefused(ErrorCode.SHAPE_MISMATCH, () -> new KvScales.PerHead(new float[1], new float[2]));
  }

  @Test
  void scalesAreKeptFromTheirGiver() {
    float[] keys = {1, 2};
    KvScales.PerHead scales = new KvScales.PerHead(keys, new float[] {3, 4});
    keys[1] = 9;
    assertThat(scales.key(1)).isEqualTo(2);
    assertThat(scales.value(0)).isEqualTo(3);
    assertThat(scales).isEqualTo(new KvScales.PerHead(new float[] {1, 2}, new float[] {3, 4}));
    assertThat(scales).isNotEqualTo(new KvScales.PerHead(new float[] {1, 9}, new float[] {3, 4}));
  }

  @Test
  void autoFollowsTheModel() {
    assertThat(KvCacheDtype.AUTO.resolve(DType.BF16)).isEqualTo(KvCacheDtype.BFLOAT16);
    assertThat(KvCacheDtype.AUTO.resolve(DType.FP16)).isEqualTo(KvCacheDtype.FLOAT16);
    assertThat(KvCacheDtype.AUTO.resolve(DType.FP32)).isEqualTo(KvCacheDtype.FLOAT32);
    assertThat(KvCacheDtype.FP8.resolve(DType.BF16)).isEqualTo(KvCacheDtype.FP8_E4M3);
    assertThat(KvCacheDtype.FP8_E5M2.resolve(DType.BF16)).isEqualTo(KvCacheDtype.FP8_E5M2);
  }

  private static KvCacheSpec spec(
      KvCacheDtype dtype, int blockSize, int heads, int headSize, int headSizeV) {
    return new KvCacheSpec(
        KvLayouts.NHD, dtype, blockSize, heads, headSize, headSizeV, KvScales.ONE);
  }
}
