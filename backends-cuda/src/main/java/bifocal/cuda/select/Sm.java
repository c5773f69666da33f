package bifocal.cuda.select;

import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile;
import io.vavr.control.Option;

/** Generations of streaming multiprocessors, by which kernels are told apart. */
final class Sm {
  private Sm() {}

  static Option<ComputeCapability> of(DeviceProfile device) {
    return device instanceof DeviceProfile.Cuda cuda
        ? Option.some(cuda.capability())
        : Option.none();
  }

  /** Major compute capability; 0 beside CUDA. */
  static int major(DeviceProfile device) {
    return device instanceof DeviceProfile.Cuda cuda ? cuda.capability().major() : 0;
  }

  static boolean atLeast(DeviceProfile device, int major, int minor) {
    return of(device).exists(c -> c.compareTo(new ComputeCapability(major, minor)) >= 0);
  }
}
