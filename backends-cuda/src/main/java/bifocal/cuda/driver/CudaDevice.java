package bifocal.cuda.driver;

import bifocal.core.device.ComputeCapability;
import bifocal.core.device.Device;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.collection.Vector;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A device as the driver describes it.
 *
 * @param ordinal index among the visible devices, from 0
 * @param handle the driver's {@code CUdevice}
 * @param name product name
 * @param capability compute capability
 * @param multiprocessors number of streaming multiprocessors
 * @param memoryBytes size of the device's memory
 * @param sharedBytesPerBlock most shared memory that a block may ask for
 * @param memoryPools whether memory can be allocated in the order of a stream
 */
public record CudaDevice(
    int ordinal,
    int handle,
    String name,
    ComputeCapability capability,
    int multiprocessors,
    long memoryBytes,
    int sharedBytesPerBlock,
    boolean memoryPools) {
  private static final int MULTIPROCESSORS = 16;
  private static final int CAPABILITY_MAJOR = 75;
  private static final int CAPABILITY_MINOR = 76;
  private static final int SHARED_BYTES_PER_BLOCK = 97;
  private static final int MEMORY_POOLS = 115;
  private static final int LONGEST_NAME = 256;

  static Seq<CudaDevice> all(CudaDriver driver) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.JAVA_INT);
      driver.require("cuDeviceGetCount", driver.deviceGetCount(out));
      int count = out.get(ValueLayout.JAVA_INT, 0);
      return Vector.range(0, count).map(ordinal -> of(driver, ordinal));
    }
  }

  /**
   * Describes one device.
   *
   * @throws BifocalException {@code NATIVE_MISSING} when there is no such device, {@code
   *     NATIVE_FAILED}
   */
  public static CudaDevice of(CudaDriver driver, int ordinal) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment number = arena.allocate(ValueLayout.JAVA_INT);
      driver.require("cuDeviceGetCount", driver.deviceGetCount(number));
      int count = number.get(ValueLayout.JAVA_INT, 0);
      if (ordinal < 0 || ordinal >= count) {
        throw absent(ordinal, count);
      }
      driver.require("cuDeviceGet", driver.deviceGet(number, ordinal));
      int handle = number.get(ValueLayout.JAVA_INT, 0);
      MemorySegment name = arena.allocate(LONGEST_NAME);
      driver.require("cuDeviceGetName", driver.deviceGetName(name, LONGEST_NAME, handle));
      MemorySegment bytes = arena.allocate(ValueLayout.JAVA_LONG);
      driver.require("cuDeviceTotalMem", driver.deviceTotalMem(bytes, handle));
      return new CudaDevice(
          ordinal,
          handle,
          name.getString(0),
          new ComputeCapability(
              attribute(driver, number, CAPABILITY_MAJOR, handle),
              attribute(driver, number, CAPABILITY_MINOR, handle)),
          attribute(driver, number, MULTIPROCESSORS, handle),
          bytes.get(ValueLayout.JAVA_LONG, 0),
          attribute(driver, number, SHARED_BYTES_PER_BLOCK, handle),
          attribute(driver, number, MEMORY_POOLS, handle) != 0);
    }
  }

  static BifocalException absent(int ordinal, int count) {
    return BifocalException.of(
            ErrorCode.NATIVE_MISSING,
            "CUDA device",
            ordinal,
            count == 0 ? "a device, but the driver sees none" : "0.." + (count - 1))
        .withRemedy("check nvidia-smi and CUDA_VISIBLE_DEVICES");
  }

  private static int attribute(CudaDriver driver, MemorySegment out, int attribute, int handle) {
    driver.require("cuDeviceGetAttribute", driver.deviceGetAttribute(out, attribute, handle));
    return out.get(ValueLayout.JAVA_INT, 0);
  }

  /** The device, as tensors name it. */
  public Device place() {
    return new Device(Platform.CUDA, ordinal);
  }

  /** What backends are selected for. */
  public DeviceProfile profile(Set<String> packages) {
    return new DeviceProfile.Cuda(capability, packages, false);
  }

  @Override
  public String toString() {
    return "cuda:"
        + ordinal
        + " "
        + name
        + ", compute capability "
        + capability
        + ", "
        + multiprocessors
        + " multiprocessors, "
        + (memoryBytes >> 20)
        + " MiB";
  }
}
