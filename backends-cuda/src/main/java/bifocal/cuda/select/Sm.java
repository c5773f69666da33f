package bifocal.cuda.select;

import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile;
import io.vavr.collection.HashSet;
import io.vavr.collection.Set;
import io.vavr.control.Option;

/** Generations of streaming multiprocessors, by which kernels are told apart. */
final class Sm {
  private static final Set<String> KNOWN =
      HashSet.of(
          "5.0", "5.2", "5.3", "6.0", "6.1", "6.2", "7.0", "7.2", "7.5", "8.0", "8.6", "8.7", "8.8",
          "8.9", "9.0", "10.0", "10.1", "10.3", "11.0", "12.0", "12.1");

  private Sm() {}

  /** A word on a device that is not among the known ones. */
  static Option<String> unknown(DeviceProfile device) {
    return of(device)
        .map(ComputeCapability::toString)
        .filter(capability -> !KNOWN.contains(capability))
        .map(
            capability ->
                "compute capability "
                    + capability
                    + " is not known; backends are judged by the ranges that they declare");
  }

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
