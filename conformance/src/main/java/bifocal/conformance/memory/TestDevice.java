package bifocal.conformance.memory;

import bifocal.core.backend.LaunchContext;
import bifocal.core.device.Device;
import java.lang.foreign.MemorySegment;

/**
 * The device a contract test runs on: memory, copies from and to the host, and a context to launch
 * kernels in. A platform brings its own; {@link HostTestDevice} serves backends that run in host
 * memory. It belongs to the thread that opened it.
 */
public interface TestDevice extends AutoCloseable {
  /** Which device. */
  Device device();

  /** Launches on this device, owned by the thread that opened it. */
  LaunchContext launch();

  /** Memory of exactly so many bytes, zero-filled, until the device is closed. */
  MemorySegment allocate(long bytes);

  /** Copies host memory to memory of the device of the same size. */
  void upload(MemorySegment host, MemorySegment device);

  /** Waits for what was launched, then copies memory of the device to host memory. */
  void download(MemorySegment device, MemorySegment host);

  /** Whether block tables and slots are handed to backends in host memory. */
  default boolean tablesOnHost() {
    return false;
  }

  /** Releases all memory; fails when something was written beside it. */
  @Override
  void close();
}
