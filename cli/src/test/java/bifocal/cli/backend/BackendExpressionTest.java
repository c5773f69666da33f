package bifocal.cli.backend;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.composite.guice.AttentionBackends;
import bifocal.conformance.fake.CallLog;
import bifocal.conformance.fake.FakeBackend;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Composed;
import bifocal.core.backend.FeatureSet;
import bifocal.core.cache.KvLayouts;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.reference.ReferenceBackend;
import bifocal.routing.MMPrefixAttentionRouting;
import io.vavr.collection.TreeMap;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** How backends are written on the command line. */
class BackendExpressionTest {
  private static final FeatureSet EVERYTHING =
      ReferenceBackend.over(KvLayouts.NHD).capabilities().all();

  @ParameterizedTest(name = "{0} is read as {1}")
  @CsvSource({
    "CPU_ATTN, CPU_ATTN",
    "(CPU_ATTN), CPU_ATTN",
    "((CPU_ATTN)), CPU_ATTN",
    "A+B, A+B",
    "' A + B ', A+B",
    "(A+B), A+B",
    "(A)+(B), A+B",
    "(A+B)+C, (A+B)+C",
    "A+(B+C), A+(B+C)",
    "(A+B)+(C+D), (A+B)+(C+D)",
    "((A+B)+C)+D, ((A+B)+C)+D",
    "( A + ( B + C ) ), A+(B+C)",
  })
  void isRead(String text, String expected) {
    assertThat(BackendExpression.of(text)).hasToString(expected);
  }

  @ParameterizedTest(name = "[{0}] is refused at character {1}, where {2} stands in place of {3}")
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '"',
      value = {
        "\"\" | 1 | the end | the name of a backend",
        "\"  \" | 3 | the end | the name of a backend",
        "+ | 1 | '+' | the name of a backend",
        "+B | 1 | '+' | the name of a backend",
        "A+ | 3 | the end | the name of a backend",
        "A++B | 3 | '+' | the name of a backend",
        "() | 2 | ')' | the name of a backend",
        "A+() | 4 | ')' | the name of a backend",
        "(A | 3 | the end | ')'",
        "(A+B | 5 | the end | ')'",
        "((A+B)+C | 9 | the end | ')'",
        "A) | 2 | ')' | the end or one '+'",
        "(A+B)C | 6 | 'C' | the end or one '+'",
        "A(B) | 2 | '(' | the end or one '+'",
        "A+B+C | 4 | '+' | which belong together, as in (A+B)+C",
        "(A+B+C)+D | 5 | '+' | ')'",
      })
  void isRefused(String text, int character, String seen, String wanted) {
    assertThatThrownBy(() -> BackendExpression.of(text))
        .isInstanceOfSatisfying(
            BifocalException.class,
            refusal -> {
              assertThat(refusal.code()).isEqualTo(ErrorCode.INVALID_OPTION);
              assertThat(refusal).hasMessageContaining("character " + character);
              assertThat(refusal.seen()).isEqualTo(seen);
              assertThat(refusal.wanted()).contains(wanted);
            });
  }

  @Test
  void parenthesesWithoutEndAreRefusedAndNotFollowed() {
    assertThatThrownBy(() -> BackendExpression.of("(".repeat(100_000) + "A"))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining("at most 16 pairs inside one another");
  }

  @Test
  void aPairInsideAnotherIsOneOfItsChildren() {
    AttentionBackend<?> nested =
        BackendExpression.of("(a+b)+a")
            .backend(
                name -> FakeBackend.of(name.toUpperCase(Locale.ROOT), new CallLog(), EVERYTHING),
                new MMPrefixAttentionRouting());

    assertThat(nested.name()).isEqualTo(BackendName.of("(A+B)+A"));
    assertThat(((Composed) nested).childA().name()).isEqualTo(BackendName.of("A+B"));
    assertThat(((Composed) nested).childB().name()).isEqualTo(BackendName.of("A"));
  }

  @Test
  void aNameThatNobodyKnowsIsRefusedWhereverItStands() {
    FakeBackend known = FakeBackend.of("CPU_ATTN", new CallLog(), EVERYTHING);
    BackendCatalog catalog =
        BackendCatalog.of(new AttentionBackends(TreeMap.of(known.name(), known)));

    assertThatThrownBy(
            () -> catalog.find("(cpu_attn+CPU_ATN)+CPU_ATTN", new MMPrefixAttentionRouting()))
        .isInstanceOfSatisfying(
            BifocalException.class,
            refusal -> {
              assertThat(refusal.code()).isEqualTo(ErrorCode.UNKNOWN_BACKEND);
              assertThat(refusal.remedy()).contains("CPU_ATTN");
            });
  }
}
