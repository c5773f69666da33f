package bifocal.rocm.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.backend.ResolvedVariant;
import bifocal.core.device.DeviceProfile;
import bifocal.core.select.LatentPrefillBackend;
import io.vavr.control.Option;

/** AMD's kernels, as far as they are installed. */
final class AiterLibrary {
  /** The package's name. */
  static final String NAME = "aiter";

  private AiterLibrary() {}

  /** Whether a device has them; a simulated one does unless they are assumed away. */
  static boolean on(DeviceProfile device) {
    return LatentPrefillBackend.assumed(NAME, device);
  }

  /** What speaks against a backend that is made of them. */
  static Option<InvalidReason> required(AttentionRequest request, ResolvedVariant variant) {
    return Option.when(
        !on(request.device()),
        () ->
            new InvalidReason(
                ReasonCode.COMBINATION, "aiter is not installed", "no aiter", "the aiter package"));
  }
}
