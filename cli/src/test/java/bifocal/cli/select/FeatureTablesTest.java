package bifocal.cli.select;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.cli.Main;
import bifocal.cli.command.CommandRun;
import bifocal.composite.guice.BifocalInjector;
import bifocal.composite.guice.PlatformModule;
import bifocal.composite.guice.PlatformModules;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.device.Platform;
import bifocal.core.select.PlatformPolicy;
import bifocal.core.select.Selector;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The tables, cell by cell beside the reference's. */
class FeatureTablesTest {

  private static Seq<String> reference() {
    try (InputStream file =
        Objects.requireNonNull(
            FeatureTablesTest.class.getResourceAsStream("backend-features.tsv"))) {
      return Vector.of(new String(file.readAllBytes(), StandardCharsets.UTF_8).split("\n"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Seq<String> printed(String... arguments) {
    CommandRun run = CommandRun.of("", console -> Main.run(console, arguments));
    assertThat(run.status()).as(run.err()).isZero();
    return Vector.of(run.out().split("\n"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"standard", "minimax_m3", "mla", "deepseek_v4"})
  void everyCellIsTheReferences(String table) {
    Asking.requireAllInstalled();

    assertThat(printed("tables", "--format", "tsv", "--table", table))
        .containsExactlyElementsOf(
            reference()
                .filter(line -> line.startsWith("table\t") || line.startsWith(table + "\t")));
  }

  @Test
  void noRowIsPrintedThatTheReferenceLacks() {
    assertThat(reference().asJava())
        .containsAll(printed("tables"))
        .startsWith(printed("tables").head());
  }

  @ParameterizedTest
  @EnumSource(Platform.class)
  void whereAPlatformIsLeftOutItsRowsAreAbsentAndNoOthers(Platform left) {
    Asking.requireInstalled(left);
    Seq<PlatformModule> all = PlatformModules.detect().present();
    Selector rest = selector(all.filter(module -> module.platform() != left));
    Selector alone = selector(all.filter(module -> module.platform() == left));

    Seq<Seq<String>> everything = Tables.features(Asking.SELECTOR).rows();
    Seq<Seq<String>> remaining = Tables.features(rest).rows();

    assertThat(everything.removeAll(Tables.features(alone).rows()))
        .containsExactlyElementsOf(remaining);
    assertThat(remaining.size() + Tables.features(alone).rows().size())
        .isEqualTo(everything.size());
    assertThat(rest.policies().map(PlatformPolicy::platform)).doesNotContain(left);
  }

  private static Selector selector(Seq<PlatformModule> modules) {
    return BifocalInjector.create(modules).getInstance(Selector.class);
  }

  @Test
  void theExecutionTableNamesEveryBackendOnceForEachRow() {
    Asking.requireAllInstalled();
    Seq<Seq<String>> rows =
        printed("tables", "--table", "execution").tail().map(row -> Vector.of(row.split("\t", -1)));

    assertThat(rows.map(row -> row.get(1)).distinct())
        .containsExactlyInAnyOrderElementsOf(
            Asking.SELECTOR.registry().snapshot().names().map(name -> name.value()));
    assertThat(rows.map(row -> row.get(3)).distinct())
        .isSubsetOf("native", "native with pack", "reference only", "not here");
    assertThat(rows.filter(row -> !row.get(3).equals("native")).map(row -> row.get(4)))
        .allMatch(reason -> reason.matches("[A-Z0-9_]+: .+"));
  }

  @ParameterizedTest(name = "composites as documentation shows them: {0}")
  @CsvSource({
    "TRITON_FLASHINFER, '256, 512', 64, cuda 10.x",
    "TRITON_FLASH_ATTN, '256, 512', %16, cuda 9.x"
  })
  void compositesClaimWhatTheReferenceSays(
      String name, String headSizes, String blockSizes, String devices) {
    Asking.requireInstalled(Platform.CUDA);
    FeatureSet features = Asking.SELECTOR.registry().snapshot().require(name).capabilities().all();

    assertThat(features.headSizes()).hasToString(headSizes);
    assertThat(features.blockSizes()).hasToString(blockSizes);
    assertThat(features.devices()).hasToString(devices);
    assertThat(features.has(Feature.DCP)).isFalse();
  }

  @Test
  void anUnknownTableNamesTheNearest() {
    CommandRun run =
        CommandRun.of("", console -> Main.run(console, "tables", "--table", "standart"));

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err()).contains("'standard'");
  }
}
