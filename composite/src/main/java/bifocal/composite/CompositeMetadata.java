package bifocal.composite;

import bifocal.core.backend.AttentionMetadata;
import bifocal.core.graph.GraphKey;
import bifocal.core.route.Route;

/**
 * One step's batch of a composite: the route, and what the children of that route built. A child
 * that does not run has no metadata.
 */
public sealed interface CompositeMetadata<
        MA extends AttentionMetadata, MB extends AttentionMetadata>
    extends AttentionMetadata {
  /** Where the batch goes, and why. */
  Route route();

  /** No request has a query: nothing was built and nothing runs. */
  record Idle<MA extends AttentionMetadata, MB extends AttentionMetadata>(Route route)
      implements CompositeMetadata<MA, MB> {}

  /**
   * All of the batch's queries run on child A.
   *
   * @param captureSafe whether the batch may be captured, as far as the policy is concerned
   */
  record OnChildA<MA extends AttentionMetadata, MB extends AttentionMetadata>(
      Route route, ChildRun<MA> run, boolean captureSafe) implements CompositeMetadata<MA, MB> {
    @Override
    public GraphKey graphKey() {
      return run.graphKey("A", captureSafe);
    }
  }

  /**
   * All of the batch's queries run on child B.
   *
   * @param captureSafe whether the batch may be captured, as far as the policy is concerned
   */
  record OnChildB<MA extends AttentionMetadata, MB extends AttentionMetadata>(
      Route route, ChildRun<MB> run, boolean captureSafe) implements CompositeMetadata<MA, MB> {
    @Override
    public GraphKey graphKey() {
      return run.graphKey("B", captureSafe);
    }
  }

  /** Each child runs its own requests. Which rows those are differs from step to step. */
  record Split<MA extends AttentionMetadata, MB extends AttentionMetadata>(
      Route route, ChildRun<MA> runA, ChildRun<MB> runB) implements CompositeMetadata<MA, MB> {}

  /** All of the batch's queries run on child B, some as runs cut out of their requests. */
  record Lowered<MA extends AttentionMetadata, MB extends AttentionMetadata>(
      Route route, ChildRun<MB> run) implements CompositeMetadata<MA, MB> {}
}
