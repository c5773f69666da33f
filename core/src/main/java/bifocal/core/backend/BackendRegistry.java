package bifocal.core.backend;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.NearestName;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.List;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.control.Option;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The backends of one process by name. Who selects takes a {@link #snapshot} first: it never
 * changes, so a selection sees the registry as it was before or after a registration on another
 * thread, never half of one.
 */
public final class BackendRegistry {
  private final AtomicReference<Snapshot> current =
      new AtomicReference<>(new Snapshot(LinkedHashMap.empty()));

  /** A backend and who registered it; compared by identity. */
  private static final class Entry {
    private final BackendName name;
    private final AttentionBackend<?> backend;
    private final String provider;

    private Entry(AttentionBackend<?> backend, String provider) {
      this.name = backend.name();
      this.backend = backend;
      this.provider = provider;
    }
  }

  /** The right to take a registration back. */
  @FunctionalInterface
  public interface Registration extends AutoCloseable {
    /**
     * Takes the registration back. What it had replaced is there again; what has replaced it stays.
     * Doing so twice is harmless.
     */
    @Override
    void close();
  }

  /** The registry at one moment; immutable. */
  public static final class Snapshot {
    /** For each name its registrations, the one that counts first, those it replaced behind. */
    private final Map<BackendName, List<Entry>> entries;

    private Snapshot(Map<BackendName, List<Entry>> entries) {
      this.entries = entries;
    }

    /** Names in the order of their first registration. */
    public Seq<BackendName> names() {
      return entries.keySet().toVector();
    }

    /** Backends in the order of their names' first registration. */
    public Seq<AttentionBackend<?>> backends() {
      return entries.values().map(Snapshot::top).toVector();
    }

    /** The backend of a name; absent when the name is unknown. */
    public Option<AttentionBackend<?>> find(BackendName name) {
      return entries.get(name).map(Snapshot::top);
    }

    /**
     * The backend of a name in any letter case.
     *
     * @throws BifocalException {@code UNKNOWN_BACKEND} with the known names and the nearest one,
     *     {@code INVALID_OPTION} for a text that no name can be
     */
    public AttentionBackend<?> require(String name) {
      BackendName wanted = BackendName.of(name);
      return find(wanted).getOrElseThrow(() -> unknown(wanted));
    }

    /** Who registered a name; absent when the name is unknown. */
    public Option<String> provider(BackendName name) {
      return entries.get(name).map(stack -> stack.head().provider);
    }

    /** Names of backends that have a feature, as advice to those whose choice lacks it. */
    public Seq<BackendName> having(Feature feature) {
      return backends()
          .filter(backend -> backend.capabilities().all().has(feature))
          .map(AttentionBackend::name);
    }

    private BifocalException unknown(BackendName name) {
      Seq<String> known = names().map(BackendName::value);
      return BifocalException.of(
              ErrorCode.UNKNOWN_BACKEND,
              "unknown backend",
              name,
              known.isEmpty() ? "no backend is registered" : "one of " + known.mkString(", "))
          .withRemedy(NearestName.advice(name.value(), known));
    }

    private static AttentionBackend<?> top(List<Entry> stack) {
      return stack.head().backend;
    }

    private Snapshot with(Entry entry, boolean replacing) {
      BackendName name = entry.name;
      List<Entry> present = entries.get(name).getOrElse(List.empty());
      if (present.nonEmpty() && !replacing) {
        throw BifocalException.of(
                ErrorCode.DUPLICATE_BACKEND,
                "backend " + name,
                "registered by " + present.head().provider + " and again by " + entry.provider,
                "one provider")
            .withRemedy("choose another name, or say that the backend replaces the present one");
      }
      if (present.isEmpty() && replacing) {
        throw unknown(name);
      }
      return new Snapshot(entries.put(name, present.prepend(entry)));
    }

    private Snapshot without(Entry entry) {
      BackendName name = entry.name;
      List<Entry> rest =
          entries.get(name).getOrElse(List.empty()).removeFirst(present -> present == entry);
      return new Snapshot(rest.isEmpty() ? entries.remove(name) : entries.put(name, rest));
    }
  }

  /** The registry now. */
  public Snapshot snapshot() {
    return current.get();
  }

  /**
   * Adds a backend under its name.
   *
   * @param provider who registers it, as an error about a second one shall say
   * @throws BifocalException {@code DUPLICATE_BACKEND} naming both providers
   */
  public Registration register(AttentionBackend<?> backend, String provider) {
    return add(new Entry(backend, provider), false);
  }

  /**
   * Puts a backend in the place of the present one of its name, until the registration is taken
   * back.
   *
   * @throws BifocalException {@code UNKNOWN_BACKEND} when there is none to replace
   */
  public Registration replace(AttentionBackend<?> backend, String provider) {
    return add(new Entry(backend, provider), true);
  }

  private Registration add(Entry entry, boolean replacing) {
    current.updateAndGet(snapshot -> snapshot.with(entry, replacing));
    return () -> current.updateAndGet(snapshot -> snapshot.without(entry));
  }
}
