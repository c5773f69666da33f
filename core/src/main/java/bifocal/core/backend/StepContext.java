package bifocal.core.backend;

import bifocal.core.workspace.WorkspaceView;

/**
 * What a builder may use while it builds one step's metadata.
 *
 * @param launch device, stream and thread of the step
 * @param workspace this backend's regions and memory leased for the step
 * @param step number of the step
 */
public record StepContext(LaunchContext launch, WorkspaceView workspace, long step) {
  /** The context of a child whose workspace was planned under a prefix. */
  public StepContext child(String prefix) {
    return new StepContext(launch, workspace.child(prefix), step);
  }
}
