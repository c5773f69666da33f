package bifocal.core.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.ResolvedVariant;

/** Resolves the variant of a backend that serves a request. */
@FunctionalInterface
public interface VariantChoice {
  /** The variant, with all of the layer's parameters at hand. */
  ResolvedVariant resolve(AttentionRequest request);
}
