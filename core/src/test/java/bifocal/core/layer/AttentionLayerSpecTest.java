package bifocal.core.layer;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.cache.KvCacheDtype;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class AttentionLayerSpecTest {
  private static final AttentionLayerSpec.Dense DENSE =
      AttentionLayerSpec.Dense.decoder(12, 4, 64, DType.BF16, AttentionMask.CAUSAL);
  private static final AttentionLayerSpec.Mla LATENT =
      new AttentionLayerSpec.Mla(
          16, 512, 128, 64, 128, DType.BF16, KvCacheDtype.AUTO, AttentionMask.CAUSAL, 0.1, true);

  @Test
  void aDecoderLayerHasTheUsualScaleAndNothingElse() {
    assertThat(DENSE.scale()).isEqualTo(0.125);
    assertThat(DENSE.groupSize()).isEqualTo(3);
    assertThat(DENSE.headSizeV()).isEqualTo(64);
    assertThat(DENSE.softcap()).isEmpty();
    assertThat(DENSE.alibi() || DENSE.sinks()).isFalse();
  }

  @ParameterizedTest
  @CsvSource({"0, 1, 64", "-4, 1, 64", "8, 0, 64", "8, 3, 64", "8, 2, 0", "8, 2, -64"})
  void headsThatCannotBeAreRefused(int heads, int kvHeads, int size) {
    assertRefused(
        ErrorCode.INVALID_PARAMETER,
        () ->
            AttentionLayerSpec.Dense.decoder(
                heads, kvHeads, size, DType.BF16, AttentionMask.CAUSAL));
  }

  @ParameterizedTest
  @ValueSource(doubles = {0, -0.0, -50})
  void aSoftcapIsPositive(double cap) {
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> DENSE.withSoftcap(cap))
        .contains("leave softcap out when there is none");
  }

  @ParameterizedTest
  @ValueSource(doubles = {Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY})
  void softcapsAndScalesAreFinite(double number) {
    assertRefused(ErrorCode.NOT_FINITE, () -> DENSE.withSoftcap(number));
    assertRefused(ErrorCode.NOT_FINITE, () -> DENSE.withScale(number));
  }

  @Test
  void aChangeLeavesTheRestAsItWas() {
    AttentionLayerSpec.Dense changed =
        DENSE.withSoftcap(30).withSinks(true).withAlibi(true).withHeadSizeV(32);
    assertThat(changed.softcap()).containsExactly(30.0);
    assertThat(changed.headSizeV()).isEqualTo(32);
    assertThat(changed.withMask(AttentionMask.BIDIRECTIONAL).withMask(AttentionMask.CAUSAL))
        .isEqualTo(changed);
    assertThat(changed.withKvCacheDtype(KvCacheDtype.FP8).withType(AttentionType.DECODER).sinks())
        .isTrue();
  }

  @Test
  void aLatentLayerCachesOneVectorForAllHeads() {
    assertThat(LATENT.headSize()).isEqualTo(576);
    assertThat(LATENT.headSizeV()).isEqualTo(512);
    assertThat(LATENT.numKvHeads()).isEqualTo(1);
    assertThat(LATENT.cachesLatents()).isTrue();
    assertThat(LATENT.choosesKeys()).isFalse();
    assertThat(LATENT.sinks()).isTrue();
    assertRefused(
        ErrorCode.INVALID_PARAMETER,
        () ->
            new AttentionLayerSpec.Mla(
                16, 0, 128, 0, 128, DType.BF16, KvCacheDtype.AUTO, AttentionMask.CAUSAL, 1, false));
  }

  @Test
  void sparseLayersAnswerForTheLayerUnderneath() {
    AttentionLayerSpec sparse = new AttentionLayerSpec.SparseMla(LATENT, 2048);
    assertThat(sparse.cachesLatents() && sparse.choosesKeys() && sparse.sinks()).isTrue();
    assertThat(sparse.headSize()).isEqualTo(576);
    AttentionLayerSpec blocks =
        new AttentionLayerSpec.BlockSparse(DENSE.withSoftcap(9).withAlibi(true), 128, 16);
    assertThat(blocks.choosesKeys()).isTrue();
    assertThat(blocks.cachesLatents()).isFalse();
    assertThat(blocks.softcap()).containsExactly(9.0);
    assertThat(blocks.alibi()).isTrue();
    assertThat(blocks.groupSize()).isEqualTo(3);
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> new AttentionLayerSpec.SparseMla(LATENT, 0));
    assertRefused(
        ErrorCode.INVALID_PARAMETER, () -> new AttentionLayerSpec.BlockSparse(DENSE, 0, 16));
    assertRefused(
        ErrorCode.INVALID_PARAMETER, () -> new AttentionLayerSpec.BlockSparse(DENSE, 128, 0));
  }

  @Test
  void windowsSeeThemselvesAndTheKeysBefore() {
    AttentionMask windowed = AttentionMask.CAUSAL.withWindow(4);
    assertThat(windowed.leftWindow()).isEqualTo(3);
    assertThat(windowed.rightWindow()).isZero();
    assertThat(AttentionMask.CAUSAL.leftWindow()).isEqualTo(-1);
    AttentionMask both = AttentionMask.BIDIRECTIONAL.withWindow(4);
    assertThat(both.leftWindow()).isEqualTo(3);
    assertThat(both.rightWindow()).isEqualTo(3);
    assertThat(AttentionMask.BIDIRECTIONAL.rightWindow()).isEqualTo(-1);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, -1, Integer.MIN_VALUE})
  void windowsAndChunksArePositive(int size) {
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> AttentionMask.CAUSAL.withWindow(size));
    assertRefused(
        ErrorCode.INVALID_PARAMETER,
        () -> new AttentionMask(true, Option.none(), ImageMask.NONE, Option.some(size)));
  }

  @ParameterizedTest
  @EnumSource(
      value = ImageMask.class,
      names = {"OVERRIDE", "CLAMP_PAST", "CLAMP_BOTH"})
  void imagesJoinCausalMasksOnly(ImageMask images) {
    assertThat(AttentionMask.CAUSAL.withImages(images).seesImages()).isTrue();
    assertRefused(
        ErrorCode.INVALID_PARAMETER, () -> AttentionMask.BIDIRECTIONAL.withImages(images));
  }

  @Test
  void aGroupHasLayers() {
    assertThat(LayerGroup.of("full", DENSE).layers()).containsExactly("full");
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> new LayerGroup("full", DENSE, Vector.empty()));
  }

  @Test
  void onlyLayersOfADecoderReadACache() {
    assertThat(AttentionType.DECODER.usesKvCache()).isTrue();
    assertThat(AttentionType.ENCODER_DECODER.usesKvCache()).isTrue();
    assertThat(AttentionType.ENCODER.usesKvCache()).isFalse();
    assertThat(AttentionType.ENCODER_ONLY.usesKvCache()).isFalse();
    assertThat(AttentionType.ENCODER_ONLY.label()).isEqualTo("encoder_only");
  }

  @Test
  void aRecordMayBeKeyAndValueAtOnce() {
    AttentionLayerSpec.Mla latent =
        new AttentionLayerSpec.Mla(
            64,
            448,
            448,
            64,
            512,
            DType.BF16,
            KvCacheDtype.AUTO,
            AttentionMask.CAUSAL,
            0.1,
            true,
            true);

    assertThat(latent.headSize()).isEqualTo(512);
    assertThat(latent.headSizeV()).isEqualTo(512);
    assertThat(latent.cachedAs(KvCacheDtype.FP8_DS_MLA).headSizeV()).isEqualTo(512);
  }
}
