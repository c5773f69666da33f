package bifocal.core.select;

import bifocal.core.backend.BackendName;
import io.vavr.Lazy;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.List;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.control.Option;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;

/**
 * Backends of latent prefill that a host registers: under a name of its own, as {@code CUSTOM}, or
 * in the place of a backend that a platform declares. Who registers a name again overrides what the
 * name meant before, until the registration is closed. Safe for any thread; a selection sees one
 * {@link #snapshot}.
 */
public final class LatentPrefillRegistry {
  /** The name that means nothing until somebody registers it. */
  public static final String CUSTOM = "CUSTOM";

  private final AtomicReference<Snapshot> current =
      new AtomicReference<>(new Snapshot(LinkedHashMap.empty()));

  /** A backend and where it comes from; compared by identity. */
  private static final class Entry {
    private final String name;
    private final String path;
    private final Lazy<LatentPrefillBackend> backend;

    private Entry(String name, String path, Supplier<LatentPrefillBackend> maker) {
      this.name = name;
      this.path = path;
      this.backend = Lazy.of(() -> maker.get().named(name));
    }
  }

  /** The right to take a registration back. */
  @FunctionalInterface
  public interface Registration extends AutoCloseable {
    /** Takes the registration back; what it had overridden counts again. Twice is harmless. */
    @Override
    void close();
  }

  /** The registry at one moment; immutable. */
  public static final class Snapshot {
    /** Nothing registered. */
    public static final Snapshot EMPTY = new Snapshot(LinkedHashMap.empty());

    private final Map<String, List<Entry>> entries;

    private Snapshot(Map<String, List<Entry>> entries) {
      this.entries = entries;
    }

    /** Registered names, in the order of their first registration. */
    public Seq<String> names() {
      return entries.keySet().toVector();
    }

    /** What is registered under a name; absent when nothing is. */
    public Option<LatentPrefillBackend> find(String name) {
      return top(name).map(entry -> entry.backend.get());
    }

    /**
     * Whether something is registered under a name, in the place of what it meant before if any.
     */
    public boolean isOverridden(String name) {
      return entries.containsKey(name);
    }

    /** The class that makes what is registered under a name; absent when nothing is. */
    public Option<String> path(String name) {
      return top(name).map(entry -> entry.path);
    }

    /** What is registered in the place of a platform's backend, else that backend. */
    LatentPrefillBackend inPlaceOf(LatentPrefillBackend declared) {
      return entries.isEmpty() ? declared : find(declared.name()).getOrElse(declared);
    }

    private Option<Entry> top(String name) {
      return entries.get(name).map(List::head);
    }

    private Snapshot with(Entry entry) {
      return new Snapshot(
          entries.put(entry.name, entries.get(entry.name).getOrElse(List.empty()).prepend(entry)));
    }

    private Snapshot without(Entry entry) {
      List<Entry> rest =
          entries.get(entry.name).getOrElse(List.empty()).removeFirst(present -> present == entry);
      return new Snapshot(
          rest.isEmpty() ? entries.remove(entry.name) : entries.put(entry.name, rest));
    }
  }

  /** The registry now. */
  public Snapshot snapshot() {
    return current.get();
  }

  /**
   * Registers what a provider makes. It is asked when the backend is first looked at.
   *
   * @param name in any letter case
   */
  public Registration register(String name, LatentPrefillProvider provider) {
    return add(name, provider.getClass().getName(), provider::backend);
  }

  /**
   * Registers a class by its name. It is loaded when the backend is first looked at; one that
   * cannot be is no error then, but a backend that refuses every layer for that reason.
   *
   * @param name in any letter case
   * @param path name of a {@link LatentPrefillProvider} with a public constructor
   */
  public Registration register(String name, String path) {
    return add(name, path, () -> loaded(name, path));
  }

  private Registration add(String name, String path, Supplier<LatentPrefillBackend> maker) {
    Entry entry = new Entry(BackendName.of(name).value(), path, maker);
    current.updateAndGet(snapshot -> snapshot.with(entry));
    return () -> current.updateAndGet(snapshot -> snapshot.without(entry));
  }

  private static LatentPrefillBackend loaded(String name, String path) {
    ClassLoader loader =
        Option.of(Thread.currentThread().getContextClassLoader())
            .getOrElse(LatentPrefillRegistry.class::getClassLoader);
    try {
      return Class.forName(path, true, loader)
          .asSubclass(LatentPrefillProvider.class)
          .getConstructor()
          .newInstance()
          .backend();
    } catch (ReflectiveOperationException | LinkageError | ClassCastException e) {
      return LatentPrefillBackend.unusable(
          name, "class " + path + " cannot be loaded: " + e.getClass().getSimpleName());
    }
  }
}
