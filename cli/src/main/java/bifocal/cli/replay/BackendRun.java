package bifocal.cli.replay;

import bifocal.cli.backend.RunDevice;
import bifocal.cli.replay.ContinuousBatching.Scheduled;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.StepContext;
import bifocal.core.cache.KvCachePool;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.device.Platform;
import bifocal.core.layer.LayerGroup;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;

/** One backend serving every layer group: its cache, its workspace, its builders and layers. */
final class BackendRun implements AutoCloseable {
  private final BackendName name;
  private final KvCachePool pool;
  private final Workspace workspace;
  private final Times times = new Times();
  private final RunDevice device;
  private final List<GroupRun<?>> groups = new ArrayList<>();
  private final List<StepBatch> batches = new ArrayList<>();

  /**
   * @param specs each group's cache contract, in the order of {@code layerGroups}
   * @param positions tokens that each group's cache has room for
   * @param platform where kernels run
   * @param arena owns workspace and tables, and outlives the run
   */
  <M extends AttentionMetadata> BackendRun(
      AttentionBackend<M> backend,
      Seq<LayerGroup> layerGroups,
      Seq<GroupInputs> inputs,
      Seq<KvCacheSpec> specs,
      long positions,
      BatchLimits limits,
      long seed,
      Inspection inspection,
      Platform platform,
      Arena arena) {
    this.name = backend.name();
    this.device = RunDevice.open(platform, times, arena);
    WorkspacePlan plan =
        layerGroups
            .zipWith(specs, (group, spec) -> backend.workspace(group, spec, limits))
            .reduce(WorkspacePlan::max);
    this.pool =
        device.pool(
            layerGroups.zipWith(
                specs,
                (group, spec) ->
                    new KvCachePool.Group(
                        group.name(), group.layers(), spec, blocks(spec, positions, limits))));
    try {
      this.workspace = device.workspace(plan);
      for (int g = 0; g < layerGroups.size(); g++) {
        LayerGroup group = layerGroups.get(g);
        batches.add(new StepBatch(group, pool.group(group.name()), limits, arena));
        groups.add(
            new GroupRun<>(
                backend, group, inputs.get(g), pool.group(group.name()), seed, inspection, device));
      }
    } catch (RuntimeException | Error e) {
      close();
      throw e;
    }
  }

  private static int blocks(KvCacheSpec spec, long positions, BatchLimits limits) {
    return Math.toIntExact(1 + Math.ceilDiv(positions, spec.blockSize()) + limits.maxRequests());
  }

  BackendName name() {
    return name;
  }

  Seq<GroupRun<?>> groups() {
    return Vector.ofAll(groups);
  }

  boolean hasRoomFor(int positions) {
    return batches.stream().allMatch(batch -> batch.hasRoomFor(positions));
  }

  void admit(int request, int positions) {
    batches.forEach(batch -> batch.admit(request, positions));
  }

  void end(int request) {
    batches.forEach(batch -> batch.end(request));
  }

  /** Runs one step of one group. */
  StepRecord run(int group, int step, Seq<Scheduled> requests) {
    try (Workspace.Step open = workspace.openStep()) {
      return groups
          .get(group)
          .run(
              new StepContext(device.launch(), open, step),
              requests,
              batches.get(group).describe(requests),
              times);
    }
  }

  @Override
  public void close() {
    groups.forEach(GroupRun::close);
    batches.forEach(StepBatch::close);
    pool.close();
    device.close();
  }
}
