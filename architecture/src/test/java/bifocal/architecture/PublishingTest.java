package bifocal.architecture;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.SpiVersion;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Function;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** What the build files say must fit together, and no tool looks at. */
class PublishingTest {
  private static final Path ROOT = Path.of("..");

  /** Modules that programs build on, whether their folder is there or not. */
  private static final List<String> LIBRARIES =
      List.of(
          "bifocal-core",
          "bifocal-routing",
          "bifocal-composite",
          "bifocal-reference",
          "bifocal-conformance",
          "bifocal-tvm-ffi",
          "bifocal-backends-cpu",
          "bifocal-backends-cuda",
          "bifocal-backends-rocm",
          "bifocal-backends-xpu",
          "bifocal-platforms");

  @Test
  void theBomNamesEveryLibraryAndNothingElse() {
    assertThat(all("<artifactId>(bifocal-(?!bom)[^<]+)<", "bom"))
        .containsExactlyInAnyOrderElementsOf(LIBRARIES);
  }

  @Test
  void theBomHasTheVersionOfTheBuild() {
    assertThat(first("<version>([^<$]+)<", "bom")).isEqualTo(first("<version>([^<$]+)<", "."));
  }

  @Test
  void jarsStateTheVersionThatPlatformsAreHeldTo() {
    assertThat(first("<bifocal.spi>(\\d+)<", ".")).isEqualTo(Integer.toString(SpiVersion.CURRENT));
  }

  @Test
  void everyModuleThatMakesAJarHasANameOfItsOwn() throws IOException {
    Function<Path, String> name =
        pom -> {
          Matcher found = matcher("<module.name>(bifocal[^<]*)<", pom);
          return found.find() ? found.group(1) : pom + " has none";
        };
    List<String> names;
    try (Stream<Path> poms = Files.walk(ROOT, 3)) {
      names =
          poms.filter(pom -> pom.endsWith("pom.xml"))
              .filter(pom -> !pom.toString().contains("target"))
              .filter(pom -> pom.getNameCount() > 2 && !pom.toString().contains(".ci"))
              .filter(pom -> !matcher("<packaging>pom<", pom).find())
              .map(name)
              .toList();
    }
    assertThat(names)
        .doesNotHaveDuplicates()
        .contains("bifocal.core", "bifocal.composite")
        .allMatch(n -> n.matches("bifocal(\\.[a-z]+)+"));
  }

  private static String first(String pattern, String folder) {
    return all(pattern, folder).getFirst();
  }

  private static List<String> all(String pattern, String folder) {
    return matcher(pattern, ROOT.resolve(folder).resolve("pom.xml"))
        .results()
        .map((MatchResult found) -> found.group(1))
        .toList();
  }

  private static Matcher matcher(String pattern, Path file) {
    try {
      return Pattern.compile(pattern).matcher(Files.readString(file));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
