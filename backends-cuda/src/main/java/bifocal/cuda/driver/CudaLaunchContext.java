package bifocal.cuda.driver;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.LaunchContext;
import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.MemorySegment;

/**
 * Where kernels are launched: a stream of a context, on the thread that made this. Stream and
 * context are owned by whoever made them, or by the host engine.
 */
public final class CudaLaunchContext implements LaunchContext {
  private final Thread owner = Thread.currentThread();
  private final CudaStream stream;
  private final Device place;
  private final AttentionObserver observer;

  /**
   * A context owned by the calling thread, on which the stream's context becomes current.
   *
   * @throws BifocalException {@code DEVICE_LOST}, {@code NATIVE_FAILED}
   */
  public CudaLaunchContext(CudaStream stream, AttentionObserver observer) {
    this.stream = stream;
    this.place = stream.context().place();
    this.observer = observer;
    stream.context().makeCurrent();
  }

  /**
   * The CUDA context behind a launch.
   *
   * @throws BifocalException {@code DEVICE_MISMATCH} for the launch context of another platform
   */
  public static CudaLaunchContext of(LaunchContext launch) {
    if (launch instanceof CudaLaunchContext cuda) {
      return cuda;
    }
    throw BifocalException.of(
        ErrorCode.DEVICE_MISMATCH, "launch context", launch.device(), "one of a CUDA device");
  }

  @Override
  public Device device() {
    return place;
  }

  @Override
  public long stream() {
    return stream.handle();
  }

  /** The stream that kernels are launched on. */
  public CudaStream queue() {
    return stream;
  }

  @Override
  public AttentionObserver observer() {
    return observer;
  }

  /** Requires the owning thread, and makes the context current on it. */
  @Override
  public void requireOwner() {
    if (Thread.currentThread() != owner) {
      throw BifocalException.of(
          ErrorCode.WRONG_THREAD, "thread of a step", Thread.currentThread(), owner);
    }
    stream.context().makeCurrent();
  }

  @Override
  public void copy(
      MemorySegment from, long fromOffset, MemorySegment to, long toOffset, long bytes) {
    stream.copyOnDevice(from, fromOffset, to, toOffset, bytes);
  }
}
