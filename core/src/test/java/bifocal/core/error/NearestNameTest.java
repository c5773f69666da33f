package bifocal.core.error;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class NearestNameTest {
  private static final List<String> KEYS = List.of("query_len", "seq_len", "images");

  @Test
  void aLetterLeftOutIsForgiven() {
    assertThat(NearestName.of("qery_len", KEYS)).containsExactly("query_len");
  }

  @Test
  void swappedNeighboursAreForgiven() {
    assertThat(NearestName.of("ab", List.of("xyb", "ba", "xy"))).containsExactly("ba");
  }

  @Test
  void aPartOfANameFindsIt() {
    assertThat(NearestName.of("windw", List.of("mask", "sliding_window")))
        .containsExactly("sliding_window");
  }

  @Test
  void lettersTooManyAndReplacedAreForgiven() {
    assertThat(NearestName.of("query_length", KEYS)).containsExactly("query_len");
    assertThat(NearestName.of("imates", KEYS)).containsExactly("images");
  }

  @Test
  void letterCaseDoesNotCount() {
    assertThat(NearestName.of("IMAGES", KEYS)).containsExactly("images");
  }

  @Test
  void ofEquallyNearNamesTheFirstIsTaken() {
    assertThat(NearestName.of("axis", List.of("axes", "axel"))).containsExactly("axes");
    assertThat(NearestName.of("axis", List.of("axos", "axes"))).containsExactly("axos");
  }

  @Test
  void withoutKnownNamesThereIsNoAdvice() {
    assertThat(NearestName.of("images", List.of())).isEmpty();
    assertThat(NearestName.advice("images", List.of())).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"zzzz", "", "x", "banana", "nothing"})
  void aNameThatResemblesNothingHasNoNearest(String given) {
    assertThat(NearestName.of(given, KEYS)).isEmpty();
    assertThat(NearestName.advice(given, KEYS)).isEmpty();
    assertThat(NearestName.adviceElseAll(given, KEYS))
        .isEqualTo("known are query_len, seq_len, images");
  }

  @Test
  void aNameThatIsFartherCanResembleMore() {
    assertThat(NearestName.of("windw", List.of("w", "sliding_window")))
        .containsExactly("sliding_window");
  }

  @Test
  void adviceListsEveryNameWhereItIsAskedTo() {
    assertThat(NearestName.adviceAndAll("imags", KEYS))
        .isEqualTo("the nearest known one is 'images'; known are query_len, seq_len, images");
    assertThat(NearestName.adviceAndAll("zzzz", KEYS))
        .isEqualTo("known are query_len, seq_len, images");
    assertThat(NearestName.adviceElseAll("imags", KEYS))
        .isEqualTo("the nearest known one is 'images'");
    assertThat(NearestName.adviceElseAll("imags", List.of())).isEqualTo("none is known");
  }

  @Test
  void adviceNamesTheNearest() {
    assertThat(NearestName.advice("imags", KEYS)).isEqualTo("the nearest known one is 'images'");
  }

  @Test
  void endlessNamesAreComparedByTheirBeginning() {
    assertThat(NearestName.of("images".repeat(1_000_000), List.of("images".repeat(20))))
        .isNotEmpty();
  }
}
