package bifocal.core.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.InvalidReason;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.Platform;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;

/** How one platform chooses. Its lists and rules belong to the platform's module. */
public interface PlatformPolicy {
  /** Kind of hardware. */
  Platform platform();

  /** The device of this host; absent when there is none. */
  Option<DeviceProfile> probe();

  /**
   * A device that is not here.
   *
   * @throws bifocal.core.error.BifocalException {@code INVALID_OPTION} when the description lacks
   *     what the platform tells devices apart by
   */
  DeviceProfile simulate(DeviceDescription description);

  /** Kernel packages that a simulated device may be assumed to have or to lack, by name. */
  default Seq<String> packages() {
    return Vector.empty();
  }

  /** The candidates of a request, and what the model's policies make of it. */
  SelectionPlan plan(SelectionRequest request);

  /** The lists that documentation prints. */
  Seq<PriorityList> priorityLists();

  /**
   * The backend of latent prefill beside a chosen decode backend.
   *
   * @param registered what hosts registered beside the platform's backends, or in their place
   * @return which, or every reason against the one that the user names
   */
  default Validation<Seq<InvalidReason>, LatentPrefill> latentPrefill(
      BackendName decode,
      AttentionRequest asked,
      AttentionConfig config,
      LatentPrefillRegistry.Snapshot registered) {
    return Validation.valid(LatentPrefill.NONE);
  }

  /**
   * Rows of the reference's table of latent prefill: backend, description, dtypes, compute
   * capability, notes.
   */
  default Seq<Seq<String>> latentPrefillRows() {
    return Vector.empty();
  }
}
