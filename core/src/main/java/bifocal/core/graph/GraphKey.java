package bifocal.core.graph;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;

/**
 * What a captured graph may be replayed for: the same route, the same padded number of requests and
 * of query tokens.
 *
 * @param route names the kernels that were recorded, children included
 * @param requests requests, padding included
 * @param queryTokens query tokens, padding included
 * @param captureSafe whether such a batch may be captured at all
 */
public record GraphKey(String route, int requests, int queryTokens, boolean captureSafe) {
  /** A batch that is never captured. */
  public static final GraphKey EAGER = new GraphKey("eager", 0, 0, false);

  /**
   * Requires that a graph captured under {@code captured} may be replayed for this key.
   *
   * @throws BifocalException {@code NOT_CAPTURABLE} or {@code GRAPH_KEY_MISMATCH}
   */
  public void requireReplayOf(GraphKey captured) {
    if (!captureSafe) {
      throw BifocalException.of(
          ErrorCode.NOT_CAPTURABLE, "graph replay of a batch", this, captured);
    }
    if (!equals(captured)) {
      throw BifocalException.of(
          ErrorCode.GRAPH_KEY_MISMATCH, "graph captured for another batch", this, captured);
    }
  }
}
