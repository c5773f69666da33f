package bifocal.conformance;

import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.KvInput;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheView;
import bifocal.core.workspace.Workspace;
import java.util.function.UnaryOperator;

/**
 * One built batch of a rig.
 *
 * @param <M> metadata of the backend
 */
final class Step<M extends AttentionMetadata> implements AutoCloseable {
  private final Rig<M> rig;
  private final HostBatch host;
  private final CommonAttentionMetadata batch;
  private final int[] source;
  private final M metadata;
  private final Workspace.Step lease;

  Step(
      Rig<M> rig,
      HostBatch host,
      CommonAttentionMetadata batch,
      int[] source,
      M metadata,
      Workspace.Step lease) {
    this.rig = rig;
    this.host = host;
    this.batch = batch;
    this.source = source;
    this.metadata = metadata;
    this.lease = lease;
  }

  /** Writes the batch's own tokens and runs it. */
  Outcome run() {
    return run(UnaryOperator.identity());
  }

  /** The same over what becomes of the tensors. */
  Outcome run(UnaryOperator<Rig.Buffers> change) {
    Rig.Buffers buffers = change.apply(rig.buffers(host));
    if (!host.plan().independentKeys()) {
      rig.writer().writeKv(rig.device().launch(), buffers.kv(), rig.cache(), buffers.slots());
      rig.wrote(host.plan());
    }
    return forward(buffers);
  }

  /** Runs over tensors of the caller's choice. */
  Outcome forward(Rig.Buffers buffers) {
    return forward(buffers, rig.cache());
  }

  /** Runs over tensors and a cache of the caller's choice. */
  Outcome forward(Rig.Buffers buffers, KvCacheView cache) {
    rig.disturbScratch();
    rig.impl().forward(rig.device().launch(), buffers.q(), cache, metadata, buffers.output());
    rig.requireZeroedRegions();
    return rig.outcome(this, buffers);
  }

  /** Runs without a cache. */
  Outcome runUncached() {
    return forwardUncached(rig.buffers(host), rig.uncached(host));
  }

  /** Runs without a cache, over tensors of the caller's choice. */
  Outcome forwardUncached(Rig.Buffers buffers, KvInput.Dense kv) {
    rig.disturbScratch();
    rig.impl().forwardUncached(rig.device().launch(), buffers.q(), kv, metadata, buffers.output());
    rig.requireZeroedRegions();
    return rig.outcome(this, buffers);
  }

  Rig<M> rig() {
    return rig;
  }

  HostBatch host() {
    return host;
  }

  CommonAttentionMetadata batch() {
    return batch;
  }

  M metadata() {
    return metadata;
  }

  /** Sequence that a request of the built batch belongs to. */
  int sequence(int request) {
    return host.plan().requests().get(source[request]).sequence();
  }

  @Override
  public void close() {
    lease.close();
    rig.closed();
  }
}
