package bifocal.core.engine;

import bifocal.core.Incubating;
import bifocal.core.backend.LaunchContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.engine.GraphCapture.CapturedGraph;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphKey;
import bifocal.core.graph.GraphSupport;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Captured graphs of attention alone, for hosts that do not capture a whole model themselves. A
 * graph is replayed for exactly the key it was captured under, which names the route; every other
 * batch runs eagerly.
 *
 * <p>Not thread-safe: it belongs to the thread that owns the device.
 */
@Incubating
public final class GraphRunner implements AutoCloseable {
  private final GraphCapture device;
  private final GraphSupport support;
  private final Map<GraphKey, CapturedGraph> graphs = new LinkedHashMap<>();
  private boolean closed;

  /** How a batch was run. */
  public enum Run {
    REPLAYED,
    EAGER
  }

  /**
   * @param support which batches may be captured: the weakest of all groups that are launched
   */
  public GraphRunner(GraphCapture device, GraphSupport support) {
    this.device = device;
    this.support = support;
  }

  /**
   * Captures a batch. A failure leaves the graphs captured before as they were.
   *
   * @throws BifocalException {@code NOT_CAPTURABLE} when the batch or its key does not allow it,
   *     {@code INVALID_PARAMETER} when the key has a graph already, {@code CLOSED}
   */
  public void capture(
      LaunchContext launch, CommonAttentionMetadata batch, GraphKey key, Runnable launches) {
    requireUsable(launch);
    if (!capturable(batch, key)) {
      throw BifocalException.of(
          ErrorCode.NOT_CAPTURABLE,
          "graph capture of a batch with up to " + batch.maxQueryLen() + " queries per request",
          key,
          "a batch that " + support + " covers");
    }
    if (graphs.containsKey(key)) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER, "graph capture", key, "a key that has no graph yet");
    }
    graphs.put(key, device.capture(launch, launches));
  }

  /** Replays the batch's graph when there is one, and else runs the launches. */
  public Run run(
      LaunchContext launch, CommonAttentionMetadata batch, GraphKey key, Runnable launches) {
    requireUsable(launch);
    CapturedGraph graph = graphs.get(key);
    if (graph == null || !capturable(batch, key)) {
      launches.run();
      return Run.EAGER;
    }
    graph.replay(launch);
    return Run.REPLAYED;
  }

  /**
   * Replays, and never runs eagerly.
   *
   * @throws BifocalException {@code NOT_CAPTURABLE} for a key that is never captured, {@code
   *     GRAPH_KEY_MISMATCH} when graphs were captured for other keys only
   */
  public void replay(LaunchContext launch, GraphKey key) {
    requireUsable(launch);
    if (!key.captureSafe()) {
      throw BifocalException.of(
          ErrorCode.NOT_CAPTURABLE, "graph replay of a batch", key, graphs.keySet());
    }
    CapturedGraph graph = graphs.get(key);
    if (graph == null) {
      throw BifocalException.of(
          ErrorCode.GRAPH_KEY_MISMATCH, "graphs captured for other batches", key, graphs.keySet());
    }
    graph.replay(launch);
  }

  /** Number of captured graphs. */
  public int size() {
    return graphs.size();
  }

  /** Releases the graphs; closing twice is harmless. */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      graphs.values().forEach(CapturedGraph::close);
      graphs.clear();
    }
  }

  private boolean capturable(CommonAttentionMetadata batch, GraphKey key) {
    return key.captureSafe() && support.covers(batch);
  }

  private void requireUsable(LaunchContext launch) {
    launch.requireOwner();
    if (closed) {
      throw BifocalException.of(ErrorCode.CLOSED, "the graphs were released");
    }
  }
}
