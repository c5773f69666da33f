package bifocal.architecture;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.composite.CompositeBackends;
import bifocal.core.Incubating;
import bifocal.core.backend.AttentionBackend;
import bifocal.routing.MMPrefixAttentionRouting;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledIfSystemProperty;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

class PublicApiTest {
  private static final Path RECORD = Path.of("api.txt");
  private static final String RENEW =
      "if that is meant, record it: mvn -q -pl architecture -am test -Dtest=PublicApiTest"
          + " -Dbifocal.api=write -Dsurefire.failIfNoSpecifiedTests=false";

  private static SortedSet<String> present() {
    return PublicApi.of(
        AttentionBackend.class, MMPrefixAttentionRouting.class, CompositeBackends.class);
  }

  @Test
  @DisabledIfSystemProperty(named = "bifocal.api", matches = "write")
  void whatWasPromisedIsStillThere() throws IOException {
    Set<String> promised = new TreeSet<>(Files.readAllLines(RECORD));

    assertThat(PublicApi.removed(promised, present())).as("removed; %s", RENEW).isEmpty();
    assertThat(PublicApi.demanded(promised, present()))
        .as("new duties of implementors; %s", RENEW)
        .isEmpty();
  }

  @Test
  @EnabledIfSystemProperty(named = "bifocal.api", matches = "write")
  void record() throws IOException {
    Files.write(RECORD, present());

    assertThat(Files.readAllLines(RECORD)).isNotEmpty();
  }

  @Test
  void everythingPublicIsPromised() {
    assertThat(present())
        .contains(
            "interface bifocal.core.backend.AttentionBackend",
            "bifocal.core.backend.AttentionBackend#name() : bifocal.core.backend.BackendName"
                + " [abstract]",
            "sealed interface bifocal.core.route.Route",
            "record bifocal.core.layer.LayerGroup",
            "bifocal.routing.MMPrefixAttentionRouting#<init>() : void",
            "bifocal.core.device.Device#HOST : bifocal.core.device.Device [static]")
        .noneMatch(line -> line.contains("bifocal.composite.CompositeImpl"));
  }

  @Test
  void whatIncubatesIsNot() {
    assertThat(present())
        .contains("annotation " + Incubating.class.getName())
        .noneMatch(line -> line.contains("bifocal.core.host."))
        .noneMatch(line -> line.contains("bifocal.core.engine.AttentionEngine"));
  }

  @Test
  void aRemovalIsSeenAndAnAdditionIsNone() {
    assertThat(PublicApi.removed(Set.of("class a.B", "a.B#c() : int"), Set.of("class a.B")))
        .containsExactly("a.B#c() : int");
    assertThat(PublicApi.removed(Set.of("class a.B"), Set.of("class a.B", "a.B#c() : int")))
        .isEmpty();
  }

  @Test
  void aNewDutyOfImplementorsIsSeenWhereTheTypeWasPromised() {
    Set<String> promised = Set.of("interface a.B");

    assertThat(
            PublicApi.demanded(
                promised, Set.of("a.B#c() : int [abstract]", "a.B#d() : int", "a.C#e() : int")))
        .containsExactly("a.B#c() : int [abstract]");
  }
}
