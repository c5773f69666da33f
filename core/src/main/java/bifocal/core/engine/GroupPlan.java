package bifocal.core.engine;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendValidator;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.KvContract;
import bifocal.core.backend.StatedGraphSupport;
import bifocal.core.cache.KvCachePool;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvScales;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.select.SelectionReport;
import bifocal.core.workspace.WorkspacePlan;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Validation;
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
   * The group on a backend that the host names.
   *
   * @param request the group's layer on its device; its block size is the one of the host's block
   *     table, if that is fixed
   * @return the plan, or every reason against it
   */
  public static Validation<Seq<InvalidReason>, GroupPlan> of(
      LayerGroup group, AttentionBackend<?> backend, AttentionRequest request) {
    AttentionRequest asked = request.withLayer(group.spec());
    return new BackendValidator(BackendValidator.Scope.EXECUTION)
        .validate(backend, asked)
        .flatMap(
            accepted ->
                KvContract.resolve(
                    KvContract.Party.writer(backend, asked),
                    Vector.of(KvContract.Party.reader(backend, asked)),
                    group.spec(),
                    KvScales.ONE,
                    request.blockSize()))
        .map(cache -> new GroupPlan(group, backend, cache));
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
