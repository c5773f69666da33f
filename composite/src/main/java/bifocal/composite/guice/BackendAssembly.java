package bifocal.composite.guice;

import bifocal.composite.CompositeBackends;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.InvalidReason;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.TreeMap;
import io.vavr.collection.Vector;
import io.vavr.control.Validation;

/**
 * Makes every bound composite once its children are there, children first. What cannot be made is
 * reported together.
 */
final class BackendAssembly {
  private Map<BackendName, AttentionBackend<?>> backends;
  private Seq<String> problems = Vector.empty();

  private BackendAssembly(Map<BackendName, AttentionBackend<?>> backends) {
    this.backends = backends;
  }

  /**
   * All backends, composites included, by name.
   *
   * @throws BifocalException {@code INVALID_COMPOSITION} with every problem
   */
  static Map<BackendName, AttentionBackend<?>> assemble(
      java.util.Map<BackendName, AttentionBackend<?>> bound, Iterable<CompositeBinding> bindings) {
    BackendAssembly assembly = new BackendAssembly(TreeMap.ofAll(bound));
    bound.forEach(assembly::requireOwnName);
    assembly.composeAll(Vector.ofAll(bindings).sortBy(CompositeBinding::name));
    return assembly.complete();
  }

  private void requireOwnName(BackendName key, AttentionBackend<?> backend) {
    if (!key.equals(backend.name())) {
      problems = problems.append("backend " + backend.name() + " is bound as " + key);
    }
  }

  private void composeAll(Seq<CompositeBinding> waiting) {
    Seq<CompositeBinding> ready =
        waiting.filter(b -> backends.containsKey(b.childA()) && backends.containsKey(b.childB()));
    if (ready.isEmpty()) {
      waiting.forEach(this::reportMissingChildren);
      return;
    }
    ready.forEach(this::compose);
    composeAll(waiting.removeAll(ready));
  }

  private void compose(CompositeBinding binding) {
    if (backends.containsKey(binding.name())) {
      problems = problems.append("two backends are bound as " + binding.name());
      return;
    }
    composite(binding, backends.get(binding.childA()).get(), backends.get(binding.childB()).get())
        .peek(made -> backends = backends.put(binding.name(), made))
        .swap()
        .peek(reasons -> report(binding, reasons));
  }

  private static <MA extends AttentionMetadata, MB extends AttentionMetadata>
      Validation<Seq<InvalidReason>, ? extends AttentionBackend<?>> composite(
          CompositeBinding binding, AttentionBackend<MA> a, AttentionBackend<MB> b) {
    return CompositeBackends.createCompositeBackend(
        binding.name(), a, b, binding.policy(), binding.limits());
  }

  private void report(CompositeBinding binding, Seq<InvalidReason> reasons) {
    problems =
        problems.append(
            binding.name()
                + " of "
                + binding.childA()
                + " and "
                + binding.childB()
                + ": "
                + reasons.map(r -> r.text() + " (" + r.seen() + ")").mkString(", "));
  }

  private void reportMissingChildren(CompositeBinding binding) {
    problems =
        problems.append(
            binding.name()
                + " needs "
                + Vector.of(binding.childA(), binding.childB())
                    .filter(child -> !backends.containsKey(child))
                    .mkString(" and "));
  }

  private Map<BackendName, AttentionBackend<?>> complete() {
    if (problems.nonEmpty()) {
      throw BifocalException.of(
              ErrorCode.INVALID_COMPOSITION,
              "backends that were bound",
              problems.mkString("; "),
              "composites whose children are bound and can be composed")
          .withRemedy("install the modules that bind the children; bound are " + names());
    }
    return backends;
  }

  private String names() {
    return backends.isEmpty() ? "none" : backends.keySet().mkString(", ");
  }
}
