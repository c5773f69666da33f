package bifocal.tvm;

import bifocal.core.device.Device;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;

/**
 * A device as DLPack numbers it.
 *
 * @param type kind of device, for instance 1 for host memory and 2 for CUDA
 * @param id index among the devices of that kind
 */
public record DlDevice(int type, int id) {
  private static final int CPU = 1;
  private static final int CUDA = 2;
  private static final int CUDA_HOST = 3;
  private static final int ROCM = 10;
  private static final int ROCM_HOST = 11;
  private static final int ONE_API = 14;

  /** The number of a device. */
  public static DlDevice of(Device device) {
    return new DlDevice(type(device.platform()), device.ordinal());
  }

  static int type(Platform platform) {
    return switch (platform) {
      case CPU -> CPU;
      case CUDA -> CUDA;
      case ROCM -> ROCM;
      case XPU -> ONE_API;
    };
  }

  /**
   * The device of a number; pinned host memory is the host's.
   *
   * @throws BifocalException {@code UNSUPPORTED} for a kind of device that this runtime has no name
   *     for
   */
  public Device device() {
    return switch (type) {
      case CPU, CUDA_HOST, ROCM_HOST -> Device.HOST;
      case CUDA -> new Device(Platform.CUDA, id);
      case ROCM -> new Device(Platform.ROCM, id);
      case ONE_API -> new Device(Platform.XPU, id);
      default ->
          throw BifocalException.of(
              ErrorCode.UNSUPPORTED, "DLPack device type", type, "cpu, cuda, rocm or oneAPI");
    };
  }
}
