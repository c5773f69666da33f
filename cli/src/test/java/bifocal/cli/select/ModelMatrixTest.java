package bifocal.cli.select;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.model.ModelCatalog;
import bifocal.core.model.ModelShape;
import io.vavr.collection.Seq;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The matrix of models and devices, and the page that prints it. */
class ModelMatrixTest {
  private static final Path PAGE = Path.of("..", "docs", "models.md");

  @BeforeAll
  static void needsEveryPlatform() {
    Asking.requireAllInstalled();
  }

  private static Table table() {
    return new ModelMatrix(Asking.SELECTOR).table();
  }

  @Test
  void thePageSaysWhatIsChosen() throws IOException {
    assertThat(Files.readString(PAGE))
        .as("docs/models.md ends with what `bifocal tables --table models --format md` prints")
        .endsWith(TableFormat.MD.write(table()));
  }

  @Test
  void everyModelOfTheCatalogueHasARow() {
    assertThat(table().rows().map(row -> row.get(0)).distinct())
        .containsExactlyElementsOf(ModelCatalog.shipped().models().map(ModelShape::id));
  }

  @Test
  void everyCellOfAKnownModelNamesABackendOrAReason() {
    Seq<String> backends = Asking.SELECTOR.registry().snapshot().names().map(name -> name.value());

    assertThat(table().rows().flatMap(row -> row.subSequence(2, 10)))
        .allSatisfy(
            cell -> {
              String first = cell.split("[ ,]")[0];
              assertThat(
                      backends.contains(first)
                          || cell.equals("shapes unknown")
                          || (cell.startsWith("none: ") && cell.length() > 10))
                  .as(cell)
                  .isTrue();
            });
  }

  @Test
  void whatIsNotConfirmedIsSaid() {
    assertThat(table().rows().find(row -> row.get(0).equals("minimax-m3")).map(row -> row.last()))
        .contains("max_context, image_tokens");
  }
}
