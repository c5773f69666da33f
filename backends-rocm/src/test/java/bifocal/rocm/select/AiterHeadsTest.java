package bifocal.rocm.select;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.device.DeviceProfile;
import bifocal.core.error.BifocalException;
import bifocal.core.latent.ChosenKeys;
import bifocal.core.latent.QueryQuantization;
import bifocal.rocm.select.AiterHeads.SmallHeads;
import io.vavr.collection.HashSet;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Heads of the dense latent backend, and what the sparse one is handed. */
class AiterHeadsTest {

  private static DeviceProfile device(String arch) {
    return new DeviceProfile.Rocm(arch, HashSet.empty(), true);
  }

  @ParameterizedTest(name = "{0} heads run: {1}")
  @CsvSource({
    "0, false",
    "1, true",
    "2, true",
    "3, true",
    "8, true",
    "15, true",
    "16, true",
    "17, false",
    "24, false",
    "31, false",
    "32, true",
    "48, true",
    "128, true",
  })
  void headsFillTilesOrAreFewerThanATileHas(int heads, boolean run) {
    assertThat(new AiterHeads(heads).runnable()).isEqualTo(run);
  }

  @ParameterizedTest(name = "{0} heads are padded to {1}")
  @CsvSource({"1, 16", "12, 16", "15, 16", "16, 16", "32, 32", "128, 128"})
  void fewHeadsArePaddedToATile(int heads, int padded) {
    assertThat(new AiterHeads(heads).padded()).isEqualTo(padded);
  }

  @ParameterizedTest(name = "{0} heads")
  @CsvSource({
    "1, 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
    "2, 0 0 0 0 0 0 0 0 1 1 1 1 1 1 1 1",
    "4, 0 0 0 0 1 1 1 1 2 2 2 2 3 3 3 3",
    "8, 0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7",
    "3, 0 1 2 0 1 2 0 1 2 0 1 2 0 1 2 0",
    "12, 0 1 2 3 4 5 6 7 8 9 10 11 0 1 2 3",
    "15, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 0",
    "16, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
  })
  void divisorsRepeatEachHeadAndOthersTakeTurns(int heads, String sources) {
    AiterHeads rank = new AiterHeads(heads);

    assertThat(Vector.range(0, rank.padded()).map(rank::source).mkString(" ")).isEqualTo(sources);
  }

  @ParameterizedTest(name = "{0} heads")
  @CsvSource({"1, 0", "2, 0 8", "4, 0 4 8 12", "3, 0 1 2", "12, 0 1 2 3 4 5 6 7 8 9 10 11"})
  void resultsAreReadWhereTheirHeadsWerePut(int heads, String results) {
    AiterHeads rank = new AiterHeads(heads);

    assertThat(Vector.range(0, heads).map(rank::result).mkString(" ")).isEqualTo(results);
    assertThat(Vector.range(0, heads).map(head -> rank.source(rank.result(head))))
        .isEqualTo(Vector.range(0, heads));
  }

  @ParameterizedTest(name = "{0}, {1}, {2} query tokens, {3} heads: {4}")
  @CsvSource({
    "AUTO, gfx950, 1, 8, true",
    "AUTO, gfx950, 1, 1, true",
    "AUTO, gfx950, 1, 12, false",
    "AUTO, gfx950, 1, 16, false",
    "AUTO, gfx950, 2, 8, false",
    "AUTO, gfx942, 1, 8, false",
    "GLUON, gfx950, 1, 12, true",
    "GLUON, gfx950, 1, 15, true",
    "GLUON, gfx950, 1, 16, false",
    "GLUON, gfx950, 2, 12, false",
    "GLUON, gfx942, 1, 12, false",
    "ASM, gfx950, 1, 8, false",
    "ASM, gfx950, 1, 12, false",
  })
  void gluonRunsSingleTokensOfFewHeadsOnOneArchitecture(
      SmallHeads choice, String arch, int queryTokens, int heads, boolean gluon) {
    assertThat(new AiterHeads(heads).gluon(choice, device(arch), queryTokens)).isEqualTo(gluon);
  }

  @ParameterizedTest(name = "{0}: {1}")
  @CsvSource({"'', AUTO", "auto, AUTO", "GLUON, GLUON", "asm, ASM"})
  void theEnvironmentNamesTheKernelOfFewHeads(String value, SmallHeads choice) {
    assertThat(AiterHeads.SMALL_HEADS).isEqualTo("VLLM_ROCM_AITER_MLA_ASM_PADDING");
    assertThat(SmallHeads.of(value)).isEqualTo(choice);
  }

  @Test
  void anotherNameIsRefused() {
    assertThatThrownBy(() -> SmallHeads.of("triton"))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining("auto, gluon or asm");
  }

  @ParameterizedTest(name = "{0}, {1} heads: {2}")
  @CsvSource({
    "gfx950, 16, true",
    "gfx950, 128, true",
    "gfx950, 8, false",
    "gfx950, 15, false",
    "gfx942, 16, false",
  })
  void prefillsRunOnFp8WhereTilesAreFull(String arch, int heads, boolean fp8) {
    assertThat(new AiterHeads(heads).fp8Prefill(device(arch))).isEqualTo(fp8);
  }

  @Test
  void theSparseBackendReadsARaggedListAndQuantisesItsQueries() {
    AiterSparseInput input =
        AiterSparseInput.of(new ChosenKeys(2, new long[] {4, -1, 6, 2}, Option.none()));

    assertThat(input.keys().starts()).containsExactly(0, 1, 3);
    assertThat(input.keys().slots()).containsExactly(4, 6, 2);
    assertThat(AiterSparseInput.QUERIES).isEqualTo(QueryQuantization.BY_BACKEND);
  }
}
