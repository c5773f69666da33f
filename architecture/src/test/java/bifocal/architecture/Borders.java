package bifocal.architecture;

import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaAccess.Predicates.target;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.assignableTo;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.belongToAnyOf;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.core.domain.properties.HasName.Predicates.name;
import static com.tngtech.archunit.core.domain.properties.HasName.Predicates.nameMatching;
import static com.tngtech.archunit.core.domain.properties.HasOwner.Predicates.With.owner;
import static com.tngtech.archunit.lang.conditions.ArchPredicates.are;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.GeneralCodingRules.ACCESS_STANDARD_STREAMS;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.lang.ConditionEvents;
import com.tngtech.archunit.lang.SimpleConditionEvent;
import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.stream.Stream;
import org.jspecify.annotations.NullMarked;

/**
 * The borders that the compiler does not watch, each with a name.
 *
 * <p>A module may use the packages that its row names and nothing else, neither of ours nor of
 * others.
 */
final class Borders {

  /** What every module may use. */
  private static final String[] EVERYWHERE = {
    "java..", "jdk..", "io.vavr..", "org.jspecify..", "org.slf4j.."
  };

  private static final String JACKSON = "com.fasterxml.jackson..";
  private static final String[] GUICE = {"com.google.inject..", "jakarta.inject.."};
  private static final String[] JUNIT = {
    "org.junit..", "org.opentest4j..", "org.apiguardian..", "org.assertj.."
  };

  /** The modules that others build on; the command, examples and benchmarks are programs. */
  private static final String[] LIBRARIES = {
    "bifocal.core..",
    "bifocal.routing..",
    "bifocal.composite..",
    "bifocal.reference..",
    "bifocal.conformance..",
    "bifocal.tvm..",
    "bifocal.cpu..",
    "bifocal.cuda..",
    "bifocal.rocm..",
    "bifocal.xpu.."
  };

  /**
   * Where native code may be bound: the packages called {@code ffi}, which hold one binding class
   * per library, {@code CudaDriver}, which binds the CUDA driver, and {@code RawMemory}, which
   * checks its range once, before a hot loop.
   */
  private static final DescribedPredicate<JavaClass> BINDINGS =
      belongTo("bifocal.cpu.raw.RawMemory")
          .or(belongTo("bifocal.cuda.driver.CudaDriver"))
          .or(resideInAnyPackage("..ffi.."))
          .as("bindings (packages ffi, CudaDriver, and RawMemory)");

  /** The packages whose blocks outlive one call, each of which closes them itself. */
  private static final DescribedPredicate<JavaClass> MEMORY_OWNERS =
      resideInAnyPackage(
              "..ffi..", "..memory..", "bifocal.core.cache..", "bifocal.core.workspace..")
          .or(belongTo("bifocal.cuda.driver.CudaDriver"))
          .as("memory owners (packages ffi, memory, cache and workspace, and CudaDriver)");

  private Borders() {}

  /** Every rule by its name, in the order of this file. */
  static SequencedMap<String, ArchRule> rules() {
    SequencedMap<String, ArchRule> rules = new LinkedHashMap<>();
    modules()
        .forEach((module, allowed) -> rules.put(module + " stays inside", inside(module, allowed)));
    rules.put(
        "core has no cycles", slices().matching("bifocal.core.(*)..").should().beFreeOfCycles());
    rules.put(
        "modules have no cycles", slices().matching("bifocal.(*)..").should().beFreeOfCycles());
    rules.put("only bindings link", onlyBindingsLink());
    rules.put("only bindings reinterpret", onlyBindingsReinterpret());
    rules.put("only bindings load libraries", onlyBindingsLoad());
    rules.put("only memory owners keep arenas", onlyOwnersKeepArenas());
    rules.put("only programs print", onlyProgramsPrint());
    rules.put("nobody logs past SLF4J", nobodyLogsPastSlf4j());
    rules.put("nobody ends the JVM", nobodyEndsTheJvm());
    rules.put("packages are null-marked", packagesAreNullMarked());
    rules.put("names say what a class is", namesSayWhatAClassIs());
    rules.put("backends, builders and impls keep nothing", backendsKeepNothing());
    return rules;
  }

  private static Map<String, String[]> modules() {
    SequencedMap<String, String[]> modules = new LinkedHashMap<>();
    modules.put("core", all(JACKSON));
    modules.put("routing", all("bifocal.core.."));
    modules.put("composite", all(GUICE, "bifocal.core..", "bifocal.routing.."));
    modules.put("reference", all("bifocal.core.."));
    modules.put("conformance", all(JUNIT, "bifocal.core..", "bifocal.reference.."));
    modules.put("tvm", all(JACKSON, "bifocal.core.."));
    String[] platform = all(GUICE, "bifocal.core..", "bifocal.routing..", "bifocal.composite..");
    Stream.of("cpu", "rocm", "xpu").forEach(name -> modules.put(name, platform));
    // Manifests of kernel packs, libraries that export TVM-FFI functions, and what a step
    // allocates, which the benchmark of GPUs measures.
    modules.put("cuda", all(platform, JACKSON, "bifocal.tvm..", "com.sun.management.."));
    return modules;
  }

  private static ArchRule inside(String module, String[] allowed) {
    String own = "bifocal." + module + "..";
    return classes()
        .that()
        .resideInAPackage(own)
        .should()
        .onlyDependOnClassesThat(
            resideInAnyPackage(all(allowed, own)).or(primitivesAndArraysOfThem()))
        .allowEmptyShould(true);
  }

  private static ArchRule onlyBindingsLink() {
    return noClasses()
        .that(are(not(BINDINGS)))
        .should()
        .dependOnClassesThat(belongToAnyOf(Linker.class, SymbolLookup.class))
        .because("one class binds one library, and no other knows its symbols");
  }

  private static ArchRule onlyBindingsReinterpret() {
    return noClasses()
        .that(are(not(BINDINGS)))
        .should()
        .callMethodWhere(
            target(name("reinterpret")).and(target(owner(assignableTo(MemorySegment.class)))))
        .because("only the class that got a pointer from C knows how far it reaches");
  }

  private static ArchRule onlyBindingsLoad() {
    return noClasses()
        .that(are(not(BINDINGS)))
        .should()
        .callMethodWhere(
            target(nameMatching("load|loadLibrary"))
                .and(target(owner(assignableTo(System.class).or(assignableTo(Runtime.class))))))
        .because("a library that is missing is reported by the class that binds it");
  }

  private static ArchRule onlyOwnersKeepArenas() {
    return noClasses()
        .that(resideInAnyPackage(LIBRARIES))
        .and(not(MEMORY_OWNERS))
        .should()
        .callMethodWhere(
            target(nameMatching("ofAuto|ofShared|global"))
                .and(target(owner(assignableTo(Arena.class)))))
        .because("every block that outlives a call has one owner that closes it");
  }

  private static ArchRule onlyProgramsPrint() {
    return noClasses()
        .that(resideInAnyPackage(LIBRARIES))
        .should(ACCESS_STANDARD_STREAMS)
        .because("standard output belongs to the host");
  }

  private static ArchRule nobodyLogsPastSlf4j() {
    return noClasses()
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage("java.util.logging..", "org.apache.log4j..", "org.apache.logging..")
        .because("the host chooses where log lines go");
  }

  private static ArchRule nobodyEndsTheJvm() {
    return noClasses()
        .that(resideInAnyPackage(LIBRARIES))
        .should()
        .callMethodWhere(
            target(nameMatching("exit|halt"))
                .and(target(owner(assignableTo(System.class).or(assignableTo(Runtime.class))))))
        .because("a host lives on when attention fails");
  }

  /** JMH writes classes into a package of its own. */
  private static ArchRule packagesAreNullMarked() {
    return classes()
        .that()
        .resideOutsideOfPackage("..jmh_generated..")
        .should(
            new ArchCondition<JavaClass>("be in a package marked @NullMarked") {
              @Override
              public void check(JavaClass type, ConditionEvents events) {
                events.add(
                    new SimpleConditionEvent(
                        type,
                        type.getPackage().isAnnotatedWith(NullMarked.class),
                        type.getFullName() + ": its package is not marked"));
              }
            })
        .because("no null crosses a public border");
  }

  private static ArchRule namesSayWhatAClassIs() {
    return noClasses()
        .should()
        .haveNameMatching(".*(Util|Utils|Utility|Manager|Helper|Helpers|Misc|Common)")
        .because("such a name fits everything, and so everything ends up in the class");
  }

  private static ArchRule backendsKeepNothing() {
    return classes()
        .that(implementOneOf("AttentionBackend", "AttentionMetadataBuilder", "AttentionImpl"))
        .should(
            new ArchCondition<JavaClass>("have final fields only") {
              @Override
              public void check(JavaClass type, ConditionEvents events) {
                type.getAllFields().stream()
                    .filter(field -> !field.getModifiers().contains(JavaModifier.FINAL))
                    .forEach(
                        field ->
                            events.add(
                                SimpleConditionEvent.violated(
                                    type, field.getFullName() + " is not final")));
              }
            })
        .allowEmptyShould(true)
        .because("several steps may be under way at once, and each travels in its metadata");
  }

  private static DescribedPredicate<JavaClass> belongTo(String name) {
    return DescribedPredicate.describe(
        "belong to " + name,
        type ->
            Stream.iterate(
                    Optional.of(type),
                    Optional::isPresent,
                    outer -> outer.flatMap(JavaClass::getEnclosingClass))
                .flatMap(Optional::stream)
                .anyMatch(outer -> outer.getFullName().equals(name)));
  }

  private static DescribedPredicate<JavaClass> implementOneOf(String... interfaces) {
    return DescribedPredicate.describe(
        "implement one of " + String.join(", ", interfaces),
        type ->
            type.getAllRawInterfaces().stream()
                .anyMatch(
                    implemented ->
                        implemented.getPackageName().startsWith("bifocal.core")
                            && Stream.of(interfaces)
                                .anyMatch(implemented.getSimpleName()::equals)));
  }

  private static DescribedPredicate<JavaClass> primitivesAndArraysOfThem() {
    return DescribedPredicate.describe(
        "are primitive", type -> type.getBaseComponentType().isPrimitive());
  }

  private static String[] all(String... packages) {
    return all(EVERYWHERE, packages);
  }

  private static String[] all(String[] some, String... others) {
    return Stream.of(some, others, EVERYWHERE)
        .flatMap(Stream::of)
        .distinct()
        .toArray(String[]::new);
  }
}
