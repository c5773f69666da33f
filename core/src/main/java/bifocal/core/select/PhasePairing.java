package bifocal.core.select;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.InvalidReason;
import io.vavr.collection.Seq;
import io.vavr.control.Validation;

/** Makes one backend of a backend for prefills and one for decodes. */
@FunctionalInterface
public interface PhasePairing {
  /** The pair, or every reason why the two do not meet. */
  Validation<Seq<InvalidReason>, ? extends AttentionBackend<?>> pair(
      AttentionBackend<?> prefill, AttentionBackend<?> decode);
}
