package bifocal.cli.select;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.BackendName;
import bifocal.core.backend.ResolvesVariants;
import bifocal.core.error.BifocalException;
import bifocal.core.graph.GraphSupport;
import bifocal.core.select.ModelTraits;
import bifocal.core.select.SelectionReport;
import bifocal.core.select.SelectionRequest;
import io.vavr.collection.TreeSet;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** DeepSeek V4.1, which no record of the catalogue describes yet, on its own backends. */
class DeepSeekV41Test {
  private static final ModelTraits MODEL =
      new ModelTraits("deepseek-v4.1", "DeepSeek", TreeSet.of(512), false);

  @BeforeAll
  static void needsEveryPlatform() {
    Asking.requireAllInstalled();
  }

  private static SelectionRequest request(String arguments) {
    return Asking.request(
            "--use-mla --use-sparse --has-sink --kv-lora-rank 448 --index-topk 512 " + arguments)
        .with(MODEL);
  }

  private static SelectionReport select(String arguments) {
    return Asking.SELECTOR.selectOrThrow(request(arguments));
  }

  @ParameterizedTest
  @CsvSource({
    "9.0, auto, FLASHMLA_SPARSE_DSV41",
    "10.0, auto, FLASHMLA_SPARSE_DSV41",
    "12.0, auto, FLASHINFER_MLA_SPARSE_DSV41",
    "10.0, FLASHINFER_MLA_SPARSE_DSV4, FLASHINFER_MLA_SPARSE_DSV41",
    "12.0, FLASHINFER_MLA_SPARSE_DSV41, FLASHINFER_MLA_SPARSE_DSV41",
    "10.0, FLASHMLA_MEGA_ATTN_DSV41, FLASHMLA_MEGA_ATTN_DSV41",
    "9.0, FLASHMLA_SPARSE, FLASHMLA_SPARSE_DSV41",
    "9.0, FLASHMLA_SPARSE_DSV4, FLASHMLA_SPARSE_DSV41",
    "9.0, FLASHMLA_SPARSE_DSV41, FLASHMLA_SPARSE_DSV41",
  })
  void aNameMeansABackendOfTheModel(String capability, String named, String chosen) {
    assertThat(
            select("--capability " + capability + " --attention-backend " + named)
                .backend()
                .value())
        .isEqualTo(chosen);
  }

  @ParameterizedTest
  @ValueSource(strings = {"FLASHINFER_MLA_SPARSE", "FLASHINFER_MLA_SPARSE_SM120"})
  void aNameOfAnotherModelIsRefused(String named) {
    assertThatThrownBy(() -> select("--capability 10.0 --attention-backend " + named))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining(
            named
                + " is not a DeepSeek V4.1 attention backend. Use FLASHINFER_MLA_SPARSE_DSV41 for"
                + " DeepSeek V4.1 FlashInfer sparse MLA.");
  }

  @ParameterizedTest
  @CsvSource({
    "9.0, FLASHMLA_SPARSE_DSV41, fp8_ds_mla, DEEPSEEK_V4_584, 64",
    "10.0, FLASHMLA_SPARSE_DSV41, fp8_ds_mla, DEEPSEEK_V41_528, 128",
    "10.0, FLASHMLA_MEGA_ATTN_DSV41, nvfp4_ds_mla, DEEPSEEK_V41_288, 128",
    "10.0, FLASHINFER_MLA_SPARSE_DSV41, auto, LATENT_ROWS_512, 128",
    "12.0, FLASHINFER_MLA_SPARSE_DSV41, fp8_ds_mla, DEEPSEEK_V4_584, 64",
  })
  void theCacheFollowsTheDevice(
      String capability, String named, String cache, String layout, int block) {
    SelectionReport report = select("--capability " + capability + " --attention-backend " + named);

    assertThat(report.kvCacheDtype().label()).isEqualTo(cache);
    assertThat(report.contract().get().layout().name()).isEqualTo(layout);
    assertThat(report.blockSize()).contains(block);
  }

  @ParameterizedTest
  @CsvSource({
    "10.0, FLASHINFER_MLA_SPARSE_DSV41, 128",
    "12.0, FLASHINFER_MLA_SPARSE_DSV41, '64, 128'",
    "9.0, FLASHMLA_SPARSE_DSV41, 64",
    "10.0, FLASHMLA_SPARSE_DSV41, 128",
  })
  void pagesFollowTheDevice(String capability, String named, String pages) {
    assertThat(
            select("--capability " + capability + " --attention-backend " + named)
                .kernelBlockSizes())
        .hasToString(pages);
  }

  /** It is not selected there; its pages are told all the same. */
  @Test
  void pagesOfFlashInferOnHopperAreThoseOfNewerDevices() {
    ResolvesVariants flashInfer =
        (ResolvesVariants)
            Asking.SELECTOR
                .registry()
                .snapshot()
                .find(BackendName.of("FLASHINFER_MLA_SPARSE_DSV41"))
                .get();

    assertThat(
            flashInfer
                .variant(request("--capability 9.0").asked())
                .capabilities()
                .all()
                .blockSizes())
        .hasToString("128");
  }

  @ParameterizedTest
  @CsvSource({
    "9.0, FLASHMLA_SPARSE_DSV41",
    "10.0, FLASHMLA_MEGA_ATTN_DSV41",
    "12.0, FLASHINFER_MLA_SPARSE_DSV41",
  })
  void everyBatchCanBeCaptured(String capability, String named) {
    SelectionReport report = select("--capability " + capability + " --attention-backend " + named);

    assertThat(report.graphSupport()).isEqualTo(GraphSupport.ALWAYS);
    assertThat(report.chosen()).isInstanceOf(ResolvesVariants.class);
  }
}
