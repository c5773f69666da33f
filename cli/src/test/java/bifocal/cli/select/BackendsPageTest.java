package bifocal.cli.select;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.select.AttentionConfigReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/**
 * What documentation says beside what is declared. {@code -Dbifocal.docs=write} writes it again.
 */
class BackendsPageTest {
  private static final Path DOCS = Path.of(System.getProperty("basedir", "."), "..", "docs");

  @Test
  void thePageOfBackendsIsWhatTheDeclarationsSay() throws IOException {
    Asking.requireAllInstalled();

    compare("backends.md", BackendsPage.of(Asking.SELECTOR));
  }

  @Test
  void theSchemaOfTheConfigurationIsWhatItsKeysSay() throws IOException {
    compare("attention-config.schema.json", AttentionConfigReader.schema().toPrettyString() + "\n");
  }

  private static void compare(String file, String generated) throws IOException {
    Path page = DOCS.resolve(file);
    if ("write".equals(System.getProperty("bifocal.docs"))) {
      Files.writeString(page, generated, StandardCharsets.UTF_8);
    }
    assertThat(page).as("docs/%s; -Dbifocal.docs=write writes it", file).exists();
    assertThat(Files.readString(page, StandardCharsets.UTF_8))
        .as("docs/%s is stale; -Dbifocal.docs=write writes it again", file)
        .isEqualTo(generated);
  }
}
