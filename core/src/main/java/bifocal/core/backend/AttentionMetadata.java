package bifocal.core.backend;

import bifocal.core.graph.GraphKey;

/**
 * One step's batch as a backend's kernels want it. It lives until its step is closed; several may
 * be alive at once.
 */
public interface AttentionMetadata {
  /** What a graph captured for this batch may be replayed for. */
  default GraphKey graphKey() {
    return GraphKey.EAGER;
  }

  /** True names of the kernels that run it, as observers report them; empty when nobody says. */
  default String kernels() {
    return "";
  }
}
