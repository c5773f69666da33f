package bifocal.core.engine;

import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CacheBounds;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheView;
import bifocal.core.graph.GraphKey;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.WorkspaceView;

/**
 * One step of one layer group: its batch and the metadata built from it. It is valid until the
 * step's workspace lease is closed; several may be alive at once.
 *
 * @param <M> metadata of the backend
 */
public final class GroupStep<M extends AttentionMetadata> {
  private static final CacheBounds UNREAD = new CacheBounds(0, -1);

  private final GroupRuntime<M> runtime;
  private final LaunchContext launch;
  private final WorkspaceView workspace;
  private final CommonAttentionMetadata batch;
  private final M metadata;
  private final CacheBounds bounds;

  GroupStep(GroupRuntime<M> runtime, StepContext step, CommonAttentionMetadata batch, M metadata) {
    this.runtime = runtime;
    this.launch = step.launch();
    this.workspace = step.workspace();
    this.batch = batch;
    this.metadata = metadata;
    this.bounds =
        runtime.group().spec().type().usesKvCache() && readable(batch)
            ? CacheBounds.of(batch, runtime.cache().blockSize())
            : UNREAD;
  }

  /** The batch. */
  public CommonAttentionMetadata batch() {
    return batch;
  }

  /** What the backend built. */
  public M metadata() {
    return metadata;
  }

  /** What a graph captured in this step may be replayed for. */
  public GraphKey graphKey() {
    return metadata.graphKey();
  }

  /** Writes the step's keys and values into one layer's cache. */
  public void writeKv(int layer, KvInput input, KvCacheView view) {
    bounds.requireInside(view.numBlocks(), view.spec().blockSize());
    workspace.enter();
    try {
      runtime.writeKv(launch, layer, input, view, batch.slots());
    } finally {
      workspace.leave();
    }
  }

  /**
   * Computes one layer's attention over its cache. A failure leaves the group's regions to be
   * zeroed before their next use; a call of another thread than the owner changes nothing.
   */
  public void forward(int layer, TensorView q, KvCacheView view, AttentionOutput output) {
    launch.requireOwner();
    bounds.requireInside(view.numBlocks(), view.spec().blockSize());
    workspace.enter();
    try {
      runtime.forward(launch, layer, q, view, metadata, output);
    } catch (RuntimeException | Error failure) {
      runtime.regions(workspace).markDirty();
      throw failure;
    } finally {
      workspace.leave();
    }
  }

  /** Computes one layer's attention over keys and values in no cache; failures as above. */
  public void forwardUncached(int layer, TensorView q, KvInput kv, AttentionOutput output) {
    launch.requireOwner();
    workspace.enter();
    try {
      runtime.forwardUncached(launch, layer, q, kv, metadata, output);
    } catch (RuntimeException | Error failure) {
      runtime.regions(workspace).markDirty();
      throw failure;
    } finally {
      workspace.leave();
    }
  }

  private static boolean readable(CommonAttentionMetadata batch) {
    return batch.blockTable().device().hostReadable()
        && batch.slots().slots().device().hostReadable();
  }
}
