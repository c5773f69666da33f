package bifocal.cuda.memory;

import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.TensorView;

/** What every kernel asks of a tensor of rows, heads and head size, whoever made the kernel. */
public final class DeviceTensors {
  private DeviceTensors() {}

  /**
   * @throws BifocalException {@code DEVICE_MISMATCH} for a tensor elsewhere, {@code CLOSED} when
   *     its memory was released
   */
  public static void requireAlive(TensorView tensor, String what, Device device) {
    if (!tensor.device().equals(device)) {
      throw BifocalException.of(ErrorCode.DEVICE_MISMATCH, what, tensor.device(), device);
    }
    if (!tensor.data().scope().isAlive()) {
      throw BifocalException.of(ErrorCode.CLOSED, "the memory of " + what + " was released");
    }
  }

  /** The refusal of an address or of strides. */
  public static BifocalException misplaced(TensorView tensor, String what, String wanted) {
    return BifocalException.of(
        ErrorCode.SHAPE_MISMATCH,
        "address and strides of " + what,
        "0x"
            + Long.toHexString(tensor.address())
            + ", "
            + tensor.stride(0)
            + ", "
            + tensor.stride(1)
            + ", "
            + tensor.stride(2),
        wanted);
  }
}
