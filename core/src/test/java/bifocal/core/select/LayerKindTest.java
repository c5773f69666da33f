package bifocal.core.select;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.cache.KvCacheDtype;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.AttentionType;
import bifocal.core.tensor.DType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The kind of a layer, by which one backend is chosen for it alone. */
class LayerKindTest {

  private static AttentionMask mask(boolean windowed) {
    return windowed ? AttentionMask.CAUSAL.withWindow(128) : AttentionMask.CAUSAL;
  }

  private static AttentionLayerSpec.Dense dense(AttentionType type, boolean windowed) {
    return AttentionLayerSpec.Dense.decoder(8, 2, 64, DType.BF16, mask(windowed)).withType(type);
  }

  private static AttentionLayerSpec.Mla latent(boolean windowed) {
    return new AttentionLayerSpec.Mla(
        128, 512, 128, 64, 128, DType.BF16, KvCacheDtype.AUTO, mask(windowed), 0.1, false);
  }

  @ParameterizedTest(name = "decoder, latent {0}, window {1}: {2}")
  @CsvSource({
    "false, false, full_attention",
    "true, false, mla_attention",
    "false, true, sliding_window",
    "true, true, sliding_window_mla",
  })
  void ofADecoder(boolean latent, boolean windowed, String kind) {
    AttentionLayerSpec layer = latent ? latent(windowed) : dense(AttentionType.DECODER, windowed);

    assertThat(LayerKind.of(layer).label()).isEqualTo(kind);
  }

  @Test
  void chosenKeysDoNotChangeTheKindOfALatentLayer() {
    assertThat(LayerKind.of(new AttentionLayerSpec.SparseMla(latent(false), 2048)))
        .isEqualTo(LayerKind.MLA_ATTENTION);
  }

  @ParameterizedTest(name = "{0}, whatever its window: {1}")
  @CsvSource({
    "ENCODER_ONLY, encoder_only_attention",
    "ENCODER_DECODER, cross_attention",
  })
  void ofAnEncoder(AttentionType type, String kind) {
    assertThat(LayerKind.of(dense(type, false)).label()).isEqualTo(kind);
    assertThat(LayerKind.of(dense(type, true)).label()).isEqualTo(kind);
  }

  @ParameterizedTest
  @CsvSource({"mla_attention", "MLA_ATTENTION", "Mla_Attention"})
  void aNameIsReadInAnyLetterCase(String name) {
    assertThat(LayerKind.of(name)).isEqualTo(LayerKind.MLA_ATTENTION);
  }
}
