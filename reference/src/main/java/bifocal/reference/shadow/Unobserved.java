package bifocal.reference.shadow;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.LaunchContext;
import bifocal.core.device.Device;
import java.lang.foreign.MemorySegment;

/** A launch context whose observer does not hear of the shadow. */
record Unobserved(LaunchContext launch) implements LaunchContext {
  @Override
  public Device device() {
    return launch.device();
  }

  @Override
  public long stream() {
    return launch.stream();
  }

  @Override
  public AttentionObserver observer() {
    return AttentionObserver.NONE;
  }

  @Override
  public void requireOwner() {
    launch.requireOwner();
  }

  @Override
  public void copy(
      MemorySegment from, long fromOffset, MemorySegment to, long toOffset, long bytes) {
    launch.copy(from, fromOffset, to, toOffset, bytes);
  }
}
