package bifocal.routing;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.layer.LayerGroup;

/** A host's own test of one request of a batch. It may keep nothing between calls. */
@FunctionalInterface
public interface RequestPredicate {
  /** Whether it holds for a live request that has queries. */
  boolean test(LayerGroup group, CommonAttentionMetadata batch, int request);
}
