package bifocal.cuda.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.device.DeviceProfile;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.select.KnownBackend;
import bifocal.core.select.LayerKind;
import bifocal.core.select.SelectionPlan;
import bifocal.core.select.SelectionRequest;
import io.vavr.collection.HashSet;
import io.vavr.collection.Set;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * How the layers of DeepSeek V4 and V4.1 choose: among the model's own backends, beside every list.
 *
 * @param model how users know it
 * @param flashInfer its backend on FlashInfer
 * @param flashMla its backend on FlashMLA
 * @param flashInferNames names that mean the first
 * @param flashMlaNames names that mean the second
 * @param ownNames further backends of the model, each by its own name
 */
record DeepSeekWiring(
    String model,
    BackendName flashInfer,
    BackendName flashMla,
    Set<BackendName> flashInferNames,
    Set<BackendName> flashMlaNames,
    Set<BackendName> ownNames) {
  private static final int WORKSTATION_BLACKWELL = 12;
  private static final Set<BackendName> OF_OTHER_MODELS =
      HashSet.of(
          KnownBackend.FLASHINFER_MLA_SPARSE.backend(),
          KnownBackend.FLASHINFER_MLA_SPARSE_SM120.backend());

  static final DeepSeekWiring V4 =
      new DeepSeekWiring(
          "DeepSeek V4",
          DeepSeekV4.FLASHINFER_NAME,
          DeepSeekV4.FLASHMLA_NAME,
          HashSet.of(DeepSeekV4.FLASHINFER_NAME),
          HashSet.of(KnownBackend.FLASHMLA_SPARSE.backend(), DeepSeekV4.FLASHMLA_NAME),
          HashSet.empty());

  static final DeepSeekWiring V41 =
      new DeepSeekWiring(
          "DeepSeek V4.1",
          DeepSeekV41.FLASHINFER_NAME,
          DeepSeekV41.SPARSE,
          HashSet.of(DeepSeekV4.FLASHINFER_NAME, DeepSeekV41.FLASHINFER_NAME),
          HashSet.of(
              KnownBackend.FLASHMLA_SPARSE.backend(), DeepSeekV4.FLASHMLA_NAME, DeepSeekV41.SPARSE),
          HashSet.of(DeepSeekV41.MEGA));

  /**
   * The model's choice.
   *
   * @throws BifocalException {@code INVALID_SELECTION} for a name that only looks like the model's
   */
  SelectionPlan plan(SelectionRequest request, AttentionRequest asked) {
    Option<BackendName> named = request.config().backendOf(LayerKind.of(asked.layer()));
    return named.map(name -> named(asked, name)).getOrElse(() -> byDefault(asked));
  }

  private SelectionPlan named(AttentionRequest asked, BackendName name) {
    if (OF_OTHER_MODELS.contains(name)) {
      throw BifocalException.of(
          ErrorCode.INVALID_SELECTION,
          name
              + " is not a "
              + model
              + " attention backend. Use "
              + flashInfer
              + " for "
              + model
              + " FlashInfer sparse MLA.");
    }
    if (ownNames.contains(name)) {
      return of(asked, name);
    }
    if (flashInferNames.contains(name)) {
      return name.equals(flashInfer) ? of(asked, name) : meaning(asked, name, flashInfer);
    }
    if (flashMlaNames.contains(name)) {
      return name.equals(flashMla) ? of(asked, name) : meaning(asked, name, flashMla);
    }
    return byDefault(asked)
        .whateverIsNamed()
        .noting(name + " is no backend of " + model + " and is not looked at");
  }

  private SelectionPlan meaning(AttentionRequest asked, BackendName said, BackendName meant) {
    return of(asked, meant).whateverIsNamed().noting(said + " means " + meant + " in " + model);
  }

  private SelectionPlan byDefault(AttentionRequest asked) {
    return of(asked, ordinary(asked.device()));
  }

  private BackendName ordinary(DeviceProfile device) {
    return Sm.major(device) == WORKSTATION_BLACKWELL ? flashInfer : flashMla;
  }

  private SelectionPlan of(AttentionRequest asked, BackendName backend) {
    return SelectionPlan.byModel(
        asked, Vector.of(backend), model + " chooses among its own backends");
  }
}
