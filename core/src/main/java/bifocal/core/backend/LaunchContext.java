package bifocal.core.backend;

import bifocal.core.device.Device;
import java.lang.foreign.MemorySegment;

/**
 * Where kernels are launched: a device, its stream or queue, and the thread that owns it. A step
 * runs as a whole on that thread.
 */
public interface LaunchContext {
  Device device();

  /** Native handle of the stream or queue; 0 on the host. */
  long stream();

  /** Sees routes and runs. */
  AttentionObserver observer();

  /**
   * Requires the owning thread.
   *
   * @throws bifocal.core.error.BifocalException {@code WRONG_THREAD}
   */
  void requireOwner();

  /** Copies bytes between memory of this device, in the order of the stream. */
  void copy(MemorySegment from, long fromOffset, MemorySegment to, long toOffset, long bytes);
}
