package bifocal.core.backend;

import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.MemorySegment;

/** Runs kernels on the host, on the thread that made the context. */
public final class HostLaunchContext implements LaunchContext {
  private final Thread owner = Thread.currentThread();
  private final AttentionObserver observer;

  /** A context owned by the calling thread. */
  public HostLaunchContext(AttentionObserver observer) {
    this.observer = observer;
  }

  @Override
  public Device device() {
    return Device.HOST;
  }

  @Override
  public long stream() {
    return 0;
  }

  @Override
  public AttentionObserver observer() {
    return observer;
  }

  @Override
  public void requireOwner() {
    if (Thread.currentThread() != owner) {
      throw BifocalException.of(
          ErrorCode.WRONG_THREAD, "thread of a step", Thread.currentThread(), owner);
    }
  }

  @Override
  public void copy(
      MemorySegment from, long fromOffset, MemorySegment to, long toOffset, long bytes) {
    MemorySegment.copy(from, fromOffset, to, toOffset, bytes);
  }
}
