package bifocal.core.workspace;

import java.lang.foreign.MemorySegment;

/** What a builder sees of the workspace: its own regions, and memory for this step alone. */
public interface WorkspaceView {
  /**
   * A region this backend planned. A zeroed region that a failed run left dirty is zeroed first.
   *
   * @throws bifocal.core.error.BifocalException {@code WORKSPACE_REGION_UNKNOWN}
   */
  MemorySegment region(String name);

  /**
   * Memory that belongs to this step until the step is closed; its content is undefined.
   *
   * @param alignment in bytes, a power of two of at most {@link WorkspacePlan#ALIGNMENT}
   * @throws bifocal.core.error.BifocalException {@code WORKSPACE_TOO_SMALL}
   */
  MemorySegment lease(long bytes, long alignment);

  /** The view of a child whose regions were planned under a prefix. */
  WorkspaceView child(String prefix);

  /**
   * Requires that the step is open, so that memory leased for it may be used.
   *
   * @throws bifocal.core.error.BifocalException {@code CLOSED}
   */
  void requireOpen();

  /** Says that a run failed and may have left this backend's zeroed regions dirty. */
  void markDirty();

  /**
   * A call that uses this step's memory begins; {@link #leave} ends it, and until then the step
   * cannot be closed.
   *
   * @throws bifocal.core.error.BifocalException {@code CLOSED}
   */
  default void enter() {}

  /** A call that uses this step's memory ends. */
  default void leave() {}
}
