package bifocal.rocm.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.KernelSettings.Aiter;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionType;
import bifocal.core.select.AttentionConfig;
import bifocal.core.select.DeviceDescription;
import bifocal.core.select.KnownBackend;
import bifocal.core.select.LatentPolicy;
import bifocal.core.select.LatentPrefill;
import bifocal.core.select.LatentPrefillBackend;
import bifocal.core.select.LatentPrefillRegistry;
import bifocal.core.select.PlatformPolicy;
import bifocal.core.select.PriorityList;
import bifocal.core.select.SelectionPlan;
import bifocal.core.select.SelectionRequest;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;

/** How ROCm chooses: by what of AMD's kernels is installed, supported and switched on. */
public final class RocmPolicy implements PlatformPolicy {
  private static final int AITER_CDNA = 3;

  private final LatentPolicy latent;

  /** The policy of dense layers, and another for latent ones. */
  public RocmPolicy(LatentPolicy latent) {
    this.latent = latent;
  }

  @Override
  public Platform platform() {
    return Platform.ROCM;
  }

  @Override
  public Seq<String> packages() {
    return Vector.of(AiterLibrary.NAME, LatentPrefillBackend.FLASH_ATTENTION);
  }

  @Override
  public Option<DeviceProfile> probe() {
    return Option.none();
  }

  @Override
  public DeviceProfile simulate(DeviceDescription description) {
    return new DeviceProfile.Rocm(
        description
            .arch()
            .getOrElseThrow(
                () ->
                    BifocalException.of(
                            ErrorCode.INVALID_OPTION, "platform rocm", "no architecture", "one")
                        .withRemedy("say --arch gfx942, for instance")),
        description.packages(),
        true);
  }

  @Override
  public SelectionPlan plan(SelectionRequest request) {
    AttentionRequest asked = request.asked();
    SelectionPlan plan = byLayer(request, asked);
    return AmdArchitecture.unknown(asked.device()).map(plan::noting).getOrElse(plan);
  }

  private SelectionPlan byLayer(SelectionRequest request, AttentionRequest asked) {
    return switch (asked.layer()) {
      case AttentionLayerSpec.Dense dense -> SelectionPlan.byPriority(asked, dense(asked));
      case AttentionLayerSpec.Mla mla -> latent.plan(request, asked);
      case AttentionLayerSpec.SparseMla sparse -> latent.plan(request, asked);
      case AttentionLayerSpec.BlockSparse sparse -> latent.plan(request, asked);
    };
  }

  private static Seq<BackendName> dense(AttentionRequest asked) {
    Aiter aiter = asked.deployment().kernels().aiter();
    boolean installed = AiterLibrary.on(asked.device());
    boolean supported = installed && AmdArchitecture.of(asked.device()).cdna() >= AITER_CDNA;
    Seq<BackendName> order = Vector.empty();
    if (installed && !supported && aiter.on() && aiter.unified().getOrElse(false)) {
      order = order.append(RocmRows.AITER_UNIFIED);
    }
    if (hasTwoPartCache(asked)) {
      order = order.append(RocmRows.ROCM_ATTN);
    }
    if (installed && aiter.on() && aiter.flashAttention()) {
      order = order.append(RocmRows.AITER_FLASH);
    }
    if (supported && aiter.unified().getOrElse(true)) {
      order = order.append(RocmRows.AITER_UNIFIED);
    }
    return order
        .append(KnownBackend.TRITON_ATTN.backend())
        .append(KnownBackend.TURBOQUANT.backend());
  }

  /** Keys and values in two parts fit neither a transfer nor a cross-attention cache. */
  private static boolean hasTwoPartCache(AttentionRequest asked) {
    return !asked.deployment().kvConnector()
        && asked.layer().type() != AttentionType.ENCODER_DECODER;
  }

  @Override
  public Seq<PriorityList> priorityLists() {
    Seq<BackendName> triton =
        Vector.of(KnownBackend.TRITON_ATTN.backend(), KnownBackend.TURBOQUANT.backend());
    return Vector.of(
            new PriorityList(
                "standard", "ROCm", "without AITER", triton.prepend(RocmRows.ROCM_ATTN)),
            new PriorityList(
                "standard",
                "ROCm",
                "AITER installed, CDNA 3 or newer",
                triton.prepend(RocmRows.AITER_UNIFIED).prepend(RocmRows.ROCM_ATTN)),
            new PriorityList(
                "standard",
                "ROCm",
                "AITER installed and on, CDNA 3 or newer",
                triton
                    .prepend(RocmRows.AITER_UNIFIED)
                    .prepend(RocmRows.AITER_FLASH)
                    .prepend(RocmRows.ROCM_ATTN)))
        .appendAll(RocmLatentPolicy.printed());
  }

  @Override
  public Validation<Seq<InvalidReason>, LatentPrefill> latentPrefill(
      BackendName decode,
      AttentionRequest asked,
      AttentionConfig config,
      LatentPrefillRegistry.Snapshot registered) {
    return RocmLatentPolicy.prefill(decode, asked, config, registered);
  }

  @Override
  public Seq<Seq<String>> latentPrefillRows() {
    return RocmLatentPolicy.prefillRows();
  }
}
