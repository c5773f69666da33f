package bifocal.core.latent;

import bifocal.core.backend.BackendName;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import io.vavr.control.Option;

/**
 * Ranks that share a sequence in prefill.
 *
 * @param ranks how many; 1 for a sequence of one rank
 */
public record PrefillSharing(int ranks) {

  /** What speaks against a backend's layers being shared. */
  public Option<String> objection(BackendName backend, FeatureSet features) {
    return Option.when(
        ranks > 1 && !features.has(Feature.PCP),
        () -> "PCP requires attention backend support, but " + backend + " does not support PCP.");
  }
}
