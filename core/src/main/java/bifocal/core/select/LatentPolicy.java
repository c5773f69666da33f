package bifocal.core.select;

import bifocal.core.backend.AttentionRequest;

/** How one platform chooses for layers that cache latents or choose their keys. */
@FunctionalInterface
public interface LatentPolicy {
  /** Candidates of a latent or sparse layer. */
  SelectionPlan plan(SelectionRequest request, AttentionRequest asked);
}
