package bifocal.core.engine;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.StatedGraphSupport;
import bifocal.core.cache.KvCachePool;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.select.SelectionReport;
import bifocal.core.workspace.WorkspacePlan;
import io.vavr.collection.Seq;
import java.util.function.Function;

/**
 * A layer group with the backend that was selected for it and the contract of its cache.
 *
 * @param group the layers
 * @param backend what runs them
 * @param cache what their caches look like
 */
public record GroupPlan(LayerGroup group, AttentionBackend<?> backend, KvCacheSpec cache) {

  /**
   * The group on the backend that was selected for it.
   *
   * @throws BifocalException {@code KV_INCOMPATIBLE} when the selection agreed on no cache
   */
  public static GroupPlan of(LayerGroup group, SelectionReport selected) {
    return new GroupPlan(
        group,
        selected.chosen(),
        selected
            .contract()
            .getOrElseThrow(
                () ->
                    BifocalException.of(
                        ErrorCode.KV_INCOMPATIBLE,
                        "cache of group " + group.name() + " on " + selected.backend(),
                        "none",
                        "a contract of its writer and readers")));
  }

  /**
   * What a pool holds for the group.
   *
   * @param numBlocks blocks of the contract's size, the null block included
   */
  public KvCachePool.Group blocks(int numBlocks) {
    return new KvCachePool.Group(group.name(), group.layers(), cache, numBlocks);
  }

  /** Opens the group; its regions are found in the workspace of the engine's plan. */
  public GroupRuntime<?> open(Function<String, LayerParameters> parameters) {
    return GroupRuntime.open(backend, group, cache, regionPrefix(), parameters);
  }

  /** Stands before the names of the group's workspace regions. */
  String regionPrefix() {
    return group.name() + "/";
  }

  /** Which of the group's batches may run inside a captured graph. */
  GraphSupport graphSupport() {
    return StatedGraphSupport.of(backend, group);
  }

  /** The workspace that serves each of these largest batches. */
  WorkspacePlan workspace(Seq<BatchLimits> batches) {
    return batches
        .map(limits -> backend.workspace(group, cache, limits))
        .reduce(WorkspacePlan::max);
  }

  /** Backend and shape, as errors about sizes say it. */
  String shape() {
    return "group "
        + group.name()
        + " on "
        + backend.name()
        + " ("
        + group.spec().numHeads()
        + " query heads over "
        + group.spec().numKvHeads()
        + " KV heads, head size "
        + group.spec().headSize()
        + ")";
  }
}
