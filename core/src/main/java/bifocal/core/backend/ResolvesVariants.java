package bifocal.core.backend;

import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/** A backend that says which of its variants serves a request. */
public interface ResolvesVariants {
  /** The variant that serves a request, or would if its refusal did not stand. */
  ResolvedVariant variant(AttentionRequest request);

  /** What is worth knowing of a request, beside what its variant notes. */
  default Seq<String> remarks(AttentionRequest request) {
    return Vector.empty();
  }
}
