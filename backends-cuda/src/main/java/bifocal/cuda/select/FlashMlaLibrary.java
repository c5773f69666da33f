package bifocal.cuda.select;

import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.device.DeviceProfile;
import io.vavr.control.Option;

/** What speaks against FlashMLA's kernels on a device. */
final class FlashMlaLibrary {
  private static final int HOPPER = 9;
  private static final int BLACKWELL = 10;

  private FlashMlaLibrary() {}

  /** Attention over every key. */
  static Option<InvalidReason> dense(DeviceProfile device) {
    return missing(device)
        .orElse(
            () ->
                Features.when(
                    Sm.major(device) != HOPPER,
                    ReasonCode.DEVICE,
                    "FlashMLA Dense is only supported on Hopper devices.",
                    device.label(),
                    "9.x"));
  }

  /** Attention over chosen keys. */
  static Option<InvalidReason> sparse(DeviceProfile device) {
    int major = Sm.major(device);
    return missing(device)
        .orElse(
            () ->
                Features.when(
                    major != HOPPER && major != BLACKWELL,
                    ReasonCode.DEVICE,
                    "FlashMLA Sparse is only supported on Hopper and Blackwell DC devices.",
                    device.label(),
                    "9.x-10.x"));
  }

  private static Option<InvalidReason> missing(DeviceProfile device) {
    return Features.when(
            !KernelPackages.FLASHMLA.on(device),
            ReasonCode.COMBINATION,
            "vllm._flashmla_C is not available, likely was not compiled due to insufficient nvcc"
                + " version or a supported arch was not in the list of target arches to compile"
                + " for.",
            "no flashmla",
            "the flashmla library")
        .orElse(
            () ->
                Features.when(
                    !KernelPackages.FLASHMLA_EXTENSION.on(device),
                    ReasonCode.COMBINATION,
                    "vllm._flashmla_extension_C is not available, likely was not compiled due to a"
                        + " build error.",
                    "no flashmla-extension",
                    "the flashmla-extension library"));
  }
}
