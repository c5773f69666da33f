package bifocal.core.workspace;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;

/**
 * Memory a backend needs while it runs, sized for the largest batch.
 *
 * @param name unique inside its backend
 * @param bytes size
 * @param state what the backend finds and leaves there
 */
public record WorkspaceRegion(String name, long bytes, State state) {

  /** What holds when a kernel enters and leaves a region. */
  public enum State {
    /** Anything on entry, anything on exit; backends that never run at once may share it. */
    SCRATCH,
    /** Zero on entry, restored to zero on exit; shared with nobody. */
    ZEROED
  }

  public WorkspaceRegion {
    if (bytes < 0) {
      throw BifocalException.of(
          ErrorCode.NEGATIVE, "bytes of workspace region " + name, bytes, "at least 0");
    }
  }
}
