package bifocal.core.route;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.LayerGroup;

/**
 * Decides, from a batch and its layer group's declared mask alone, which child of a composite runs
 * it. A policy keeps nothing between calls.
 */
@FunctionalInterface
public interface RoutingPolicy {
  /**
   * Routes one step's batch. Fields of padding are never read.
   *
   * @throws bifocal.core.error.BifocalException when the batch cannot be computed in one step, for
   *     instance {@code IMAGE_CUT}
   */
  Route route(LayerGroup group, CommonAttentionMetadata batch);

  /** How reports call the policy. */
  default String name() {
    return getClass().getSimpleName();
  }

  /**
   * Whether a child may get requests whose image mask it must apply by itself. What is not needed
   * of a child is not asked of it.
   */
  default boolean carriesImages(Child child) {
    return true;
  }

  /** Whether child B may get non-causal runs with a left window. */
  default boolean lowers() {
    return false;
  }

  /** Whether some of those runs need a right window of their own, too. */
  default boolean lowersWithRightWindow() {
    return false;
  }

  /** Whether one batch may be divided between the children. */
  default boolean splits() {
    return true;
  }

  /** Which batches keep one route, so that a captured graph may be replayed for them. */
  default GraphSupport graphSupport(LayerGroup group) {
    return GraphSupport.NEVER;
  }

  /** The child whose kernels are captured for replayable batches. */
  default Child captureChild() {
    return Child.B;
  }
}
