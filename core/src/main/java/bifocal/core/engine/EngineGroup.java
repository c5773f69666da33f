package bifocal.core.engine;

import bifocal.core.Incubating;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.cache.KvBlocks;
import bifocal.core.cache.KvCacheView;
import bifocal.core.layer.LayerGroup;
import io.vavr.collection.Seq;

/** One layer group of an engine: how it runs, its blocks, and the requests that hold them. */
@Incubating
public final class EngineGroup {
  private final GroupPlan plan;
  private final GroupRuntime<?> runtime;
  private final KvBlocks blocks;
  private final PagedRequests requests;
  private final Seq<KvCacheView> caches;

  EngineGroup(GroupPlan plan, GroupRuntime<?> runtime, KvBlocks blocks, PagedRequests requests) {
    this.plan = plan;
    this.runtime = runtime;
    this.blocks = blocks;
    this.requests = requests;
    this.caches = plan.group().layers().map(blocks::view);
  }

  /** The group, its backend and the contract of its cache. */
  public GroupPlan plan() {
    return plan;
  }

  /** The layers. */
  public LayerGroup layers() {
    return plan.group();
  }

  /** The group's blocks. */
  public KvBlocks blocks() {
    return blocks;
  }

  /** The requests that hold the group's blocks; they belong to whoever schedules. */
  public PagedRequests requests() {
    return requests;
  }

  /** One layer's cache. */
  public KvCacheView cache(int layer) {
    return caches.get(layer);
  }

  /**
   * Makes room for each row's next tokens and describes the batch that computes them, with the
   * images of the sequences if the group's mask looks at images.
   *
   * @param newTokens tokens of each row in this step, 0 for rows that wait
   * @throws bifocal.core.error.BifocalException as {@link PagedRequests#schedule}
   */
  public CommonAttentionMetadata schedule(int... newTokens) {
    return requests.schedule(
        newTokens, layers().mask().seesImages() ? requests.images() : ImageRanges.NONE);
  }

  /**
   * Builds a step; its layers run until the step ends.
   *
   * @throws bifocal.core.error.BifocalException {@code WRONG_THREAD} outside {@link
   *     AttentionEngine#run}
   */
  public GroupStep<?> begin(StepContext step, CommonAttentionMetadata batch) {
    return runtime.step(step, batch);
  }
}
