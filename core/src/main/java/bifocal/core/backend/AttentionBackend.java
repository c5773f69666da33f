package bifocal.core.backend;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.workspace.WorkspacePlan;
import io.vavr.collection.Set;
import io.vavr.control.Option;

/**
 * A way to compute attention: it states what it can do, and makes metadata builders and
 * implementations. Immutable; it keeps nothing of a step or a layer.
 *
 * <p>The interface is open, so that a host brings its own backends and a test can mock one.
 *
 * @param <M> metadata its builders make and its implementations run
 */
public interface AttentionBackend<M extends AttentionMetadata> {
  /** Unique name. */
  BackendName name();

  /** Everything that some variant of this backend can do. */
  Capabilities capabilities();

  /**
   * What the variant that serves this request can do. A backend with kernel versions resolves the
   * version here, once, with all the layer's parameters; every later question is asked of it.
   */
  default Capabilities capabilities(AttentionRequest request) {
    return capabilities();
  }

  /**
   * What no table can say: a reason why this combination of supported properties does not run.
   * Asked only when each property that {@link #combinationReads} names is supported by itself.
   */
  default Option<InvalidReason> checkCombination(AttentionRequest request) {
    return Option.none();
  }

  /**
   * Properties that {@link #checkCombination} looks at, by the code of their own check. When one of
   * those checks fails, the combination is not asked about: its reason would only repeat the first.
   */
  default Set<ReasonCode> combinationReads() {
    return ReasonCode.COMBINED;
  }

  /** Why the kernels are not on this host; absent when they are. */
  default Option<InvalidReason> missingOnThisHost(AttentionRequest request) {
    return Option.none();
  }

  /** Whether this build has kernels. */
  default Execution execution() {
    return Execution.NATIVE;
  }

  /**
   * Which of a group's batches can run inside a captured graph; a derived backend states its own.
   */
  default GraphSupport graphSupport(LayerGroup group) {
    return GraphSupport.NEVER;
  }

  /** Workspace for the largest batch of a group. */
  default WorkspacePlan workspace(LayerGroup group, KvCacheSpec cache, BatchLimits limits) {
    return WorkspacePlan.NONE;
  }

  /** A builder for a group's steps, over a cache of the given contract. */
  AttentionMetadataBuilder<M> createBuilder(LayerGroup group, KvCacheSpec cache);

  /** The implementation of one layer, over a cache of the given contract. */
  AttentionImpl<M> createImpl(
      AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache);
}
