package bifocal.core.backend;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.layer.LayerGroup;
import io.vavr.control.Option;

/**
 * Turns the batch of each step into a backend's metadata, for one layer group. It keeps nothing of
 * a step; what a step needs is leased from the step's workspace.
 *
 * @param <M> metadata it builds
 */
public interface AttentionMetadataBuilder<M extends AttentionMetadata> extends AutoCloseable {
  /**
   * Builds one step's metadata.
   *
   * @throws bifocal.core.error.BifocalException when the batch cannot be run; nothing is changed
   */
  M build(StepContext step, LayerGroup group, CommonAttentionMetadata batch);

  /**
   * Queries up to which a request counts as a decode and wants to stand first in the batch; absent
   * when the order does not matter.
   */
  default Option<Integer> decodeThreshold() {
    return Option.none();
  }

  /** Releases what the builder owns; closing twice is harmless. */
  @Override
  default void close() {}
}
