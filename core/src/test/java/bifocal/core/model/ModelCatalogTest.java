package bifocal.core.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.cache.KvCacheDtype;
import bifocal.core.error.BifocalException;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.model.ModelShape.Kind;
import bifocal.core.tensor.DType;
import org.junit.jupiter.api.Test;

final class ModelCatalogTest {
  private final ModelCatalog catalog = ModelCatalog.shipped();

  @Test
  void readsEveryModelOfTheFile() {
    assertThat(catalog.models()).hasSize(46);
    assertThat(catalog.models().map(ModelShape::id).distinct()).hasSize(46);
  }

  @Test
  void gemma4JoinsImagesInSlidingLayersAlone() {
    ModelShape gemma = catalog.find("gemma-4-31b").get();

    Kind sliding = gemma.kinds().get(0);
    Kind full = gemma.kinds().get(1);

    assertThat(sliding.name()).isEqualTo("sliding");
    assertThat(sliding.share()).isEqualTo(5);
    assertThat(sliding.numHeads()).isEqualTo(32);
    assertThat(sliding.numKvHeads()).isEqualTo(16);
    assertThat(sliding.headSize()).isEqualTo(256);
    assertThat(sliding.mask().window().get()).isEqualTo(1024);
    assertThat(sliding.mask().images()).isEqualTo(ImageMask.CLAMP_PAST);
    assertThat(full.numKvHeads()).isEqualTo(4);
    assertThat(full.headSize()).isEqualTo(512);
    assertThat(full.mask().images()).isEqualTo(ImageMask.NONE);
    assertThat(full.mask().window().isEmpty()).isTrue();
    assertThat(gemma.imageTokens().get()).isEqualTo(280);
  }

  @Test
  void llama4IsChunkedNotWindowed() {
    Kind chunked = catalog.find("llama-4-scout-17b-16e").get().kinds().head();

    assertThat(chunked.mask().chunk().get()).isEqualTo(8192);
    assertThat(chunked.mask().window().isEmpty()).isTrue();
  }

  @Test
  void scalesAreReadAsTheModelStatesThem() {
    assertThat(catalog.find("gemma-3-27b").get().kinds().head().scale())
        .isEqualTo(Math.pow(168, -0.5));
    assertThat(catalog.find("gemma-4-31b").get().kinds().head().scale()).isEqualTo(1.0);
    assertThat(catalog.find("llama-3.1-8b").get().kinds().head().scale())
        .isEqualTo(Math.pow(128, -0.5));
  }

  @Test
  void anotherImageMaskReplacesOnlyMasksThatSeeImages() {
    ModelShape override = catalog.find("gemma-4-31b").get().withImageMask(ImageMask.OVERRIDE);

    assertThat(override.kinds().map(kind -> kind.mask().images()))
        .containsExactly(ImageMask.OVERRIDE, ImageMask.NONE);
  }

  @Test
  void groupsNameTheirLayers() {
    LayerGroup sliding =
        catalog.find("gemma-4-31b").get().denseGroups(DType.BF16, KvCacheDtype.AUTO, 2).head();

    assertThat(sliding.layers()).containsExactly("sliding.0", "sliding.1");
  }

  @Test
  void latentModelsHaveNoDenseGroups() {
    ModelShape deepseek = catalog.find("deepseek-v3").get();

    assertThat(deepseek.latent().get().cachedHeadSize()).isEqualTo(576);
    assertThatThrownBy(() -> deepseek.denseGroups(DType.BF16, KvCacheDtype.AUTO, 1))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining("latent attention");
  }

  @Test
  void layersOverChosenBlocksAreNotDense() {
    ModelShape blocks = catalog.find("minimax-m3").get();

    assertThat(blocks.kinds()).isNotEmpty();
    assertThatThrownBy(() -> blocks.denseGroups(DType.BF16, KvCacheDtype.AUTO, 1))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining("attention over chosen blocks");
  }

  @Test
  void unknownShapesStayUnknown() {
    assertThat(catalog.find("deepseek-v4-pro").get().kinds()).isEmpty();
    assertThat(catalog.find("no-such-model")).isEmpty();
  }
}
