package bifocal.cpu.cache;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvScales;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

final class CpuPackedLayoutTest {
  private static KvCacheSpec spec(KvCacheDtype dtype, int blockSize, int headSize) {
    return new KvCacheSpec(
        CpuPackedLayout.INSTANCE, dtype, blockSize, 2, headSize, headSize, KvScales.ONE);
  }

  @Test
  void sixteenKeysOfOneDimensionLieTogether() {
    try (Arena arena = Arena.ofConfined()) {
      KvCacheSpec spec = spec(KvCacheDtype.FLOAT32, 32, 4);
      MemorySegment block = arena.allocate(spec.blockBytes(), 64);
      CpuPackedLayout.INSTANCE.write(
          spec, block, 18, 1, new float[] {1, 2, 3, 4}, new float[] {5, 6, 7, 8});

      long head = 32 * 4 * 4;
      long key = head / 4 + 16 * 4 + 2;
      assertThat(block.getAtIndex(ValueLayout.JAVA_FLOAT, key)).isEqualTo(1);
      assertThat(block.getAtIndex(ValueLayout.JAVA_FLOAT, key + 3 * 16)).isEqualTo(4);
      long value = (spec.layout().valueOffset(spec) + head) / 4 + 18 * 4;
      assertThat(block.getAtIndex(ValueLayout.JAVA_FLOAT, value)).isEqualTo(5);
      assertThat(block.getAtIndex(ValueLayout.JAVA_FLOAT, value + 3)).isEqualTo(8);
    }
  }

  @Test
  void halvesLieInPairs() {
    try (Arena arena = Arena.ofConfined()) {
      KvCacheSpec spec = spec(KvCacheDtype.BFLOAT16, 16, 4);
      MemorySegment block = arena.allocate(spec.blockBytes(), 64);
      CpuPackedLayout.INSTANCE.write(
          spec, block, 3, 0, new float[] {1, 2, 3, 4}, new float[] {5, 6, 7, 8});

      assertThat(bfloat16(block, 3 * 2)).as("key dimension 0").isEqualTo(1);
      assertThat(bfloat16(block, 3 * 2 + 1)).as("key dimension 1").isEqualTo(2);
      assertThat(bfloat16(block, 32 + 3 * 2)).as("key dimension 2").isEqualTo(3);
      long values = spec.layout().valueOffset(spec) / 2;
      assertThat(bfloat16(block, values + 2 * 4 + 1)).as("value dimension 0").isEqualTo(5);
      assertThat(bfloat16(block, values + 2 * 4 + 2 + 1)).as("value dimension 1").isEqualTo(6);
    }
  }

  private static float bfloat16(MemorySegment block, long element) {
    return Float.intBitsToFloat(block.getAtIndex(ValueLayout.JAVA_SHORT, element) << 16);
  }

  @Test
  void everyTypeComesBack() {
    float[] key = new float[6];
    float[] value = new float[6];
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
      try (Arena arena = Arena.ofConfined()) {
        KvCacheSpec spec = spec(dtype, 16, 6);
        MemorySegment block = arena.allocate(spec.blockBytes(), 64);
        for (int token = 0; token < 16; token++) {
          for (int head = 0; head < 2; head++) {
            float unit = token - 8 + 0.5f * head;
            CpuPackedLayout.INSTANCE.write(
                spec,
                block,
                token,
                head,
                new float[] {unit, 0, 2 * unit, unit, 0, unit},
                new float[] {0, unit, unit, 0, 2 * unit, unit});
          }
        }
        for (int token = 0; token < 16; token++) {
          for (int head = 0; head < 2; head++) {
            float unit = token - 8 + 0.5f * head;
            CpuPackedLayout.INSTANCE.readKey(spec, block, token, head, key);
            CpuPackedLayout.INSTANCE.readValue(spec, block, token, head, value);
            String where = dtype + " token " + token + " head " + head;
            assertThat(key[2]).as(where).isCloseTo(2 * unit, within(unit));
            assertThat(key[4]).as(where).isZero();
            assertThat(value[4]).as(where).isCloseTo(2 * unit, within(unit));
            assertThat(value[1]).as(where).isCloseTo(unit, within(unit));
          }
        }
      }
    }
  }

  private static org.assertj.core.data.Offset<Float> within(float unit) {
    return org.assertj.core.api.Assertions.within(Math.abs(unit) / 4 + 1e-6f);
  }

  @Test
  void headsStartAtCacheLines() {
    KvCacheSpec spec = spec(KvCacheDtype.FP8_PER_TOKEN_HEAD, 16, 6);
    CpuPackedLayout.Shape shape = CpuPackedLayout.Shape.of(spec);

    assertThat(shape.keyHeadStride() % 64).isZero();
    assertThat(shape.keyHeadStride()).isGreaterThanOrEqualTo(16 * 6 + 16 * 4);
    assertThat(spec.blockBytes() % 64).isZero();
  }

  @Test
  void whatDoesNotFitIsObjectedTo() {
    assertThat(CpuPackedLayout.INSTANCE.objection(spec(KvCacheDtype.FLOAT32, 24, 64)).get())
        .contains("24");
    assertThat(CpuPackedLayout.INSTANCE.objection(spec(KvCacheDtype.FLOAT32, 16, 33)).get())
        .contains("33");
    assertThat(CpuPackedLayout.INSTANCE.objection(spec(KvCacheDtype.NVFP4, 16, 64)).get())
        .contains("nvfp4");
    assertThatThrownBy(() -> CpuPackedLayout.Shape.of(spec(KvCacheDtype.FLOAT32, 16, 33)))
        .isInstanceOfSatisfying(
            BifocalException.class,
            refusal -> assertThat(refusal.code()).isEqualTo(ErrorCode.KV_INCOMPATIBLE));
  }

  @Test
  void tokensAndHeadsOutsideABlockAreRefused() {
    try (Arena arena = Arena.ofConfined()) {
      KvCacheSpec spec = spec(KvCacheDtype.FLOAT32, 16, 4);
      MemorySegment block = arena.allocate(spec.blockBytes(), 64);
      for (int[] place : new int[][] {{16, 0}, {-1, 0}, {0, 2}, {0, -1}}) {
        assertThatThrownBy(
                () ->
                    CpuPackedLayout.INSTANCE.readKey(spec, block, place[0], place[1], new float[4]))
            .isInstanceOf(BifocalException.class);
      }
    }
  }
}
