package bifocal.cli.select;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.ResolvesVariants;
import bifocal.core.error.BifocalException;
import bifocal.core.select.Candidate;
import bifocal.core.select.SelectionRefusal;
import bifocal.core.select.SelectionReport;
import io.vavr.Lazy;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;

/**
 * What a row of a table of selections expects, parts separated by semicolons: {@code NAME} is
 * chosen, {@code !text} is refused with that text, {@code NAME: reason} is a candidate with that
 * reason, {@code NAME ok} a valid candidate, {@code NAME absent} none at all, and {@code fa},
 * {@code fi}, {@code block}, {@code layout}, {@code source}, {@code extension}, {@code note} and
 * {@code unsaid} with an equals sign tell parts of the report, as do {@code kv}, {@code prefill},
 * {@code decodes} and {@code lse} of latent layers; {@code order=} is a run of the candidates.
 */
final class Expectation {
  private final String arguments;
  private final Validation<SelectionRefusal, SelectionReport> outcome;

  private Expectation(String arguments) {
    this.arguments = arguments;
    this.outcome = outcome(arguments);
  }

  static void check(String arguments, String expected) {
    Expectation expectation = new Expectation(arguments);
    Vector.of(expected.split(";")).map(String::strip).forEach(expectation::part);
  }

  private static Validation<SelectionRefusal, SelectionReport> outcome(String arguments) {
    try {
      return Asking.select(arguments);
    } catch (BifocalException refusal) {
      return Validation.invalid(
          new SelectionRefusal(refusal.code(), Lazy.of(refusal::getMessage), Vector.empty()));
    }
  }

  private void part(String part) {
    if (part.startsWith("!")) {
      assertThat(outcome.isInvalid()).as("%s is refused", arguments).isTrue();
      assertThat(outcome.getError().message()).contains(part.substring(1).strip());
    } else if (part.endsWith(" ok")) {
      assertThat(candidate(part.substring(0, part.length() - 3)).valid()).as(part).isTrue();
    } else if (part.endsWith(" absent")) {
      assertThat(named(part.substring(0, part.length() - 7))).as(part).isEmpty();
    } else if (part.matches("[a-z]+=.*")) {
      property(part.substring(0, part.indexOf('=')), part.substring(part.indexOf('=') + 1));
    } else if (part.contains(": ")) {
      String name = part.substring(0, part.indexOf(": "));
      assertThat(candidate(name).reasons().map(reason -> reason.text()))
          .as(part)
          .contains(part.substring(part.indexOf(": ") + 2));
    } else {
      assertThat(report().backend().value()).as(arguments).isEqualTo(part);
    }
  }

  private void property(String name, String value) {
    switch (name) {
      case "fa" -> assertThat(report().flashAttentionVersion()).contains(Integer.valueOf(value));
      case "fi" -> assertThat(report().flashInferKernel()).contains(value);
      case "block" -> assertThat(report().blockSize()).contains(Integer.valueOf(value));
      case "layout" -> assertThat(report().contract().map(c -> c.layout().name())).contains(value);
      case "kernels" ->
          assertThat(report().kernelBlockSizes().toString()).isEqualTo(value.replace('|', ','));
      case "graphs" -> assertThat(report().graphSupport().name()).isEqualTo(value);
      case "kv" -> assertThat(report().kvCacheDtype().label()).isEqualTo(value);
      case "prefill" -> assertThat(report().latentPrefill().getOrElse("none")).isEqualTo(value);
      case "decodes" -> assertThat(decodes()).isEqualTo(value);
      case "lse" -> assertThat(logSumExp()).isEqualTo(value);
      case "order" -> assertThat(ranked()).contains(value);
      case "source" -> assertThat(report().source().label()).isEqualTo(value);
      case "extension" -> assertThat(report().extension()).isEqualTo(Boolean.parseBoolean(value));
      case "note" -> assertThat(report().notes().mkString("\n")).contains(value);
      case "unsaid" -> assertThat(report().notes().mkString("\n")).doesNotContain(value);
      case "hint" ->
          assertThat(Asking.candidates(outcome).flatMap(Candidate::hint).mkString("\n"))
              .contains(value);
      default -> throw new AssertionError("no such part: " + name);
    }
  }

  /** The line between decodes and prefills, for instance {@code UNIFORM 128}. */
  private String decodes() {
    return ((ResolvesVariants) report().chosen())
        .variant(Asking.request(arguments).asked())
        .decodes()
        .map(line -> line.lengths() + " " + line.tokens())
        .getOrElse("none");
  }

  /** The base of the log-sum-exp that is returned, if any. */
  private String logSumExp() {
    FeatureSet features = report().chosen().capabilities().all();
    return features.has(Feature.LSE) ? "e" : features.has(Feature.LSE_BASE_2) ? "2" : "none";
  }

  private String ranked() {
    return Asking.candidates(outcome).map(c -> c.backend().value()).mkString(" ");
  }

  private SelectionReport report() {
    assertThat(outcome.isValid())
        .as(
            "%s is served, not: %s",
            arguments, outcome.isInvalid() ? outcome.getError().message() : "")
        .isTrue();
    return outcome.get();
  }

  private Candidate candidate(String name) {
    return named(name).getOrElseThrow(() -> new AssertionError("no candidate " + name));
  }

  private Option<Candidate> named(String name) {
    Seq<Candidate> candidates = Asking.candidates(outcome);
    return candidates.find(c -> c.backend().value().equals(name));
  }
}
