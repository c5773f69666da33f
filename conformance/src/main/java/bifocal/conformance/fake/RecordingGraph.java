package bifocal.conformance.fake;

import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.BackendName;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphKey;
import io.vavr.collection.Seq;

/**
 * A captured graph without a device. Capturing keeps the forwards that fakes launched; replaying
 * launches the very same again, whatever the fakes would choose by now, if the batch's key allows.
 *
 * @param key what it was captured for
 * @param launches the recorded forwards, in order
 */
public record RecordingGraph(GraphKey key, Seq<Call.Forwarded> launches) {

  /**
   * Captures what a run launches.
   *
   * @param metadata the batch of the run
   * @throws BifocalException {@code NOT_CAPTURABLE}
   */
  public static RecordingGraph capture(CallLog log, AttentionMetadata metadata, Runnable run) {
    GraphKey key = metadata.graphKey();
    if (!key.captureSafe()) {
      throw BifocalException.of(
          ErrorCode.NOT_CAPTURABLE,
          "graph capture of a batch",
          key,
          "a batch that may be captured");
    }
    int before = log.of(Call.Forwarded.class).size();
    run.run();
    return new RecordingGraph(key, log.of(Call.Forwarded.class).drop(before));
  }

  /**
   * Launches the recorded forwards for another batch.
   *
   * @throws BifocalException {@code NOT_CAPTURABLE} or {@code GRAPH_KEY_MISMATCH}
   */
  public void replay(CallLog log, AttentionMetadata metadata) {
    metadata.graphKey().requireReplayOf(key);
    launches.forEach(log::add);
  }

  /** The backends whose kernels were recorded, in the order of their launches. */
  public Seq<BackendName> kernels() {
    return launches.map(Call.Forwarded::backend);
  }
}
