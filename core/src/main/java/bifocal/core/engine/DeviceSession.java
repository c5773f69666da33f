package bifocal.core.engine;

import bifocal.core.backend.LaunchContext;
import bifocal.core.cache.BlockMemory;
import bifocal.core.device.Device;
import bifocal.core.device.DeviceProfile;
import bifocal.core.workspace.Workspace;
import java.lang.foreign.MemorySegment;

/**
 * A device's memory and launches, for programs that have no engine of their own. It belongs to the
 * thread that opened it.
 */
public interface DeviceSession extends AutoCloseable {
  /** What backends are validated against. */
  DeviceProfile profile();

  /** Which device. */
  Device device();

  /** Where kernels are launched. */
  LaunchContext launch();

  /** Memory of the device until the session is closed, aligned to 256 bytes; content unknown. */
  MemorySegment allocate(String name, long bytes);

  /** Copies native host memory over the start of device memory, in the order of launches. */
  void upload(MemorySegment host, MemorySegment device);

  /**
   * Waits for what was launched, then copies the start of device memory over native host memory.
   */
  void download(MemorySegment device, MemorySegment host);

  /** Fills device memory with one byte, in the order of launches. */
  void fill(MemorySegment device, byte value);

  /** Waits for what was launched. */
  void synchronize();

  /** Clears and copies blocks of a cache. */
  BlockMemory blocks();

  /** Clears a workspace. */
  Workspace.Zeroing zeroing();

  /** Waits for what was launched and releases all memory; closing twice is harmless. */
  @Override
  void close();
}
