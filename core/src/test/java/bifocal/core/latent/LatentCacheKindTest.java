package bifocal.core.latent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.cache.KvCacheDtype;
import bifocal.core.error.BifocalException;
import io.vavr.collection.List;
import io.vavr.collection.Seq;
import io.vavr.control.Option;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Latent layers in one cache group, and where compressed layers read. */
class LatentCacheKindTest {
  private static final LatentCacheKind PLAIN = kind(false);

  private static LatentCacheKind kind(boolean nonCausal) {
    return new LatentCacheKind(KvCacheDtype.BFLOAT16, 1, "", Option.none(), false, nonCausal);
  }

  @ParameterizedTest(name = "{0} and {1}: {2}")
  @CsvSource({
    "false, false, false",
    "false, true, true",
    "true, false, true",
    "true, true, true",
  })
  void aGroupRunsBlocksBothWaysAsSoonAsOneLayerDoes(boolean first, boolean second, boolean merged) {
    assertThat(LatentCacheKind.merged(List.of(kind(first), kind(second)))).isEqualTo(kind(merged));
  }

  static Seq<LatentCacheKind> others() {
    return List.of(
        new LatentCacheKind(KvCacheDtype.FP8_DS_MLA, 1, "", Option.none(), false, false),
        new LatentCacheKind(KvCacheDtype.BFLOAT16, 4, "", Option.none(), false, false),
        new LatentCacheKind(KvCacheDtype.BFLOAT16, 1, "deepseek_v4", Option.none(), false, false),
        new LatentCacheKind(KvCacheDtype.BFLOAT16, 1, "", Option.some(128), false, false),
        new LatentCacheKind(KvCacheDtype.BFLOAT16, 1, "", Option.none(), true, false));
  }

  @ParameterizedTest
  @MethodSource("others")
  void layersThatDifferInAnythingElseShareNoGroup(LatentCacheKind other) {
    assertThatThrownBy(() -> LatentCacheKind.merged(List.of(PLAIN, other)))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining(
            "All attention layers in the same KV cache group must use the same quantization method,"
                + " compress ratio, model version, and KV block stride indexing.");
  }

  @Test
  void aGroupHasALayer() {
    assertThatThrownBy(() -> LatentCacheKind.merged(List.empty()))
        .isInstanceOf(BifocalException.class);
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 3, 4, 128})
  void otherCompressionsAreRefused(int ratio) {
    assertThatThrownBy(() -> new CompressedLayers(List.of(0, 1, ratio), List.empty(), List.empty()))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining(
            "Unsupported DeepSeek V4.1 compress_ratio=" + ratio + "; expected 0, 1, or 2.");
  }

  @Test
  void aLayerReadsTheNewestSourceUpToItself() {
    CompressedLayers layers =
        new CompressedLayers(List.of(0, 1, 2, 2, 2), List.of(1, 3), List.of(2));

    assertThat(layers.kvSource(0)).isEmpty();
    assertThat(layers.kvSource(2)).contains(1);
    assertThat(layers.kvSource(3)).contains(3);
    assertThat(layers.kvSource(4)).contains(3);
    assertThat(layers.indexSource(1)).isEmpty();
    assertThat(layers.indexSource(4)).contains(2);
  }
}
