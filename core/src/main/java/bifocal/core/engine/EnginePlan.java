package bifocal.core.engine;

import bifocal.core.backend.BatchLimits;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphSupport;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.core.workspace.WorkspaceRegion;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * Everything of a model's attention that is known before memory is allocated: the groups with their
 * caches, one workspace for all of them, and which batches may be captured.
 *
 * <p>Layers run one after another, so the groups' scratch regions lie over each other; what a step
 * leases lives as long as the step, so the leases add up.
 *
 * @param groups the groups, in model order
 * @param batches largest batches that were planned for
 * @param workspace what all groups need
 * @param graphs the weakest of all groups
 */
public record EnginePlan(
    Seq<GroupPlan> groups, Seq<BatchLimits> batches, WorkspacePlan workspace, GraphSupport graphs) {

  /**
   * Plans some groups.
   *
   * @param batches the largest batch, and each batch that will be captured, padding included: a
   *     kernel may need more for a small batch than for a large one
   * @throws BifocalException {@code INVALID_PARAMETER} without groups, without batches, or for two
   *     groups of one name
   */
  public static EnginePlan of(Seq<GroupPlan> groups, Seq<BatchLimits> batches) {
    Seq<String> names = groups.map(plan -> plan.group().name());
    if (groups.isEmpty() || batches.isEmpty() || names.distinct().size() != names.size()) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "plan of an engine",
          "groups " + names.mkString(", ") + ", " + batches.size() + " batches",
          "at least one of each, each group named once");
    }
    WorkspacePlan workspace = WorkspacePlan.NONE;
    for (GroupPlan group : groups) {
      workspace =
          WorkspacePlan.overlay("", workspace, group.regionPrefix(), group.workspace(batches));
    }
    return new EnginePlan(
        groups,
        batches,
        workspace,
        groups.map(GroupPlan::graphSupport).reduce(GraphSupport::weakest));
  }

  /**
   * Plans some groups for batches up to one size.
   *
   * @throws BifocalException as {@link #of(Seq, Seq)}
   */
  public static EnginePlan of(BatchLimits largest, GroupPlan... groups) {
    return of(Vector.of(groups), Vector.of(largest));
  }

  /** Bytes of the workspace with so many steps in flight. */
  public long workspaceBytes(int stepsInFlight) {
    return workspace.totalBytes(stepsInFlight);
  }

  /**
   * Requires that a workspace of the configured size is large enough.
   *
   * @param option how users raise it, for the message
   * @throws BifocalException {@code WORKSPACE_TOO_SMALL} naming the group that needs most, its
   *     backend and shape, its largest region, the batches, and the bytes needed and available
   */
  public void requireFits(long availableBytes, int stepsInFlight, String option) {
    long needed = workspaceBytes(stepsInFlight);
    if (availableBytes >= needed) {
      return;
    }
    throw BifocalException.of(
            ErrorCode.WORKSPACE_TOO_SMALL,
            "workspace for " + hungriest().shape() + largestRegion() + batches.mkString(" and "),
            availableBytes + " bytes",
            needed + " bytes")
        .withRemedy("set " + option + " to at least " + needed);
  }

  private GroupPlan hungriest() {
    return groups.maxBy(plan -> plan.workspace(batches).totalBytes(1)).get();
  }

  private String largestRegion() {
    return hungriest()
        .workspace(batches)
        .regions()
        .maxBy(WorkspaceRegion::bytes)
        .map(r -> ", whose region " + r.name() + " takes " + r.bytes() + " bytes, for ")
        .getOrElse(" for ");
  }
}
