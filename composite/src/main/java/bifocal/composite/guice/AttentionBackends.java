package bifocal.composite.guice;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.BackendName;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Map;

/** Every backend that was bound, composites included, in the order of their names. */
public record AttentionBackends(Map<BackendName, AttentionBackend<?>> byName) {
  /**
   * The backend of a name.
   *
   * @throws BifocalException {@code UNKNOWN_BACKEND} with the known names
   */
  public AttentionBackend<?> named(BackendName name) {
    return byName
        .get(name)
        .getOrElseThrow(
            () ->
                BifocalException.of(
                    ErrorCode.UNKNOWN_BACKEND, "backend", name, byName.keySet().mkString(", ")));
  }
}
