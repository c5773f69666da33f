package bifocal.architecture;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import bifocal.core.crossing.Fixtures;
import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.lang.EvaluationResult;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Each rule fails for a class that crosses its border. */
class CrossingTest {

  private static final Map<String, List<Class<?>>> CROSSINGS =
      Map.ofEntries(
          Map.entry("core stays inside", List.of(bifocal.core.crossing.Crosses.class)),
          Map.entry("routing stays inside", List.of(bifocal.routing.crossing.Crosses.class)),
          Map.entry("composite stays inside", List.of(bifocal.composite.crossing.Crosses.class)),
          Map.entry("reference stays inside", List.of(bifocal.reference.crossing.Crosses.class)),
          Map.entry(
              "conformance stays inside", List.of(bifocal.conformance.crossing.Crosses.class)),
          Map.entry("tvm stays inside", List.of(bifocal.tvm.crossing.Crosses.class)),
          Map.entry("cpu stays inside", List.of(bifocal.cpu.crossing.Crosses.class)),
          Map.entry("cuda stays inside", List.of(bifocal.cuda.crossing.Crosses.class)),
          Map.entry("rocm stays inside", List.of(bifocal.rocm.crossing.Crosses.class)),
          Map.entry("xpu stays inside", List.of(bifocal.xpu.crossing.Crosses.class)),
          Map.entry(
              "core has no cycles",
              List.of(bifocal.core.left.Left.class, bifocal.core.right.Right.class)),
          Map.entry(
              "modules have no cycles",
              List.of(bifocal.cpu.crossing.Crosses.class, bifocal.cuda.crossing.Crosses.class)),
          Map.entry("only bindings link", List.of(Fixtures.Links.class)),
          Map.entry("only bindings reinterpret", List.of(Fixtures.Reinterprets.class)),
          Map.entry("only bindings load libraries", List.of(Fixtures.Loads.class)),
          Map.entry("only memory owners keep arenas", List.of(Fixtures.KeepsAnArena.class)),
          Map.entry("only programs print", List.of(Fixtures.Prints.class)),
          Map.entry("nobody logs past SLF4J", List.of(Fixtures.Logs.class)),
          Map.entry("nobody ends the JVM", List.of(Fixtures.Ends.class)),
          Map.entry("packages are null-marked", List.of(Fixtures.class)),
          Map.entry("names say what a class is", List.of(Fixtures.ThingManager.class)),
          Map.entry(
              "backends, builders and impls keep nothing", List.of(Fixtures.KeepsAStep.class)));

  @Test
  void everyRuleHasACrossing() {
    assertThat(CROSSINGS).containsOnlyKeys(Borders.rules().keySet());
  }

  @TestFactory
  Stream<DynamicTest> crossingIsFound() {
    JavaClasses classes =
        new ClassFileImporter()
            .withImportOption(new ImportOption.OnlyIncludeTests())
            .importPackages("bifocal");
    return Borders.rules().entrySet().stream()
        .map(
            rule ->
                dynamicTest(
                    rule.getKey(),
                    () ->
                        assertThat(rule.getValue().evaluate(crossing(classes, rule.getKey())))
                            .returns(true, EvaluationResult::hasViolation)));
  }

  private static JavaClasses crossing(JavaClasses classes, String rule) {
    return classes.that(
        DescribedPredicate.describe(
            "cross: " + rule, type -> CROSSINGS.get(rule).stream().anyMatch(type::isEquivalentTo)));
  }
}
