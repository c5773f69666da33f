package bifocal.tvm;

import bifocal.core.device.Device;

/**
 * A stream or queue of a device, on which the kernels of a call are to run.
 *
 * @param handle as the device's driver gave it; 0 is the driver's default
 */
public record DeviceStream(DlDevice device, long handle) {

  /** A stream of a device. */
  public static DeviceStream of(Device device, long handle) {
    return new DeviceStream(DlDevice.of(device), handle);
  }
}
