package bifocal.xpu.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.InvalidReason;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.Platform;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.select.AttentionConfig;
import bifocal.core.select.DeviceDescription;
import bifocal.core.select.KnownBackend;
import bifocal.core.select.LatentPrefill;
import bifocal.core.select.LatentPrefillBackend;
import bifocal.core.select.LatentPrefillOrder;
import bifocal.core.select.LatentPrefillRegistry;
import bifocal.core.select.PlatformPolicy;
import bifocal.core.select.PriorityList;
import bifocal.core.select.SelectionPlan;
import bifocal.core.select.SelectionRequest;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;

/** How XPU chooses: the first rule that fits names one backend. */
public final class XpuPolicy implements PlatformPolicy {
  private static final Seq<BackendName> FLASH = Vector.of(KnownBackend.FLASH_ATTN.backend());
  private static final Seq<BackendName> TRITON = Vector.of(KnownBackend.TRITON_ATTN.backend());
  private static final Seq<BackendName> TURBOQUANT = Vector.of(KnownBackend.TURBOQUANT.backend());
  private static final Seq<BackendName> SPARSE = Vector.of(KnownBackend.XPU_MLA_SPARSE.backend());
  private static final Seq<BackendName> LATENT = Vector.of(KnownBackend.TRITON_MLA.backend());

  @Override
  public Platform platform() {
    return Platform.XPU;
  }

  @Override
  public Seq<String> packages() {
    return Vector.of(LatentPrefillBackend.FLASH_ATTENTION);
  }

  @Override
  public Option<DeviceProfile> probe() {
    return Option.none();
  }

  @Override
  public DeviceProfile simulate(DeviceDescription description) {
    return new DeviceProfile.Xpu("xpu", description.packages(), true);
  }

  @Override
  public SelectionPlan plan(SelectionRequest request) {
    AttentionRequest asked = request.asked();
    if (request.model().deepSeekV4() || request.model().deepSeekV41()) {
      return SelectionPlan.byPriority(asked, Vector.empty())
          .whateverIsNamed()
          .noting("The model's own class on this platform has no name that a user could choose.");
    }
    return SelectionPlan.byPriority(asked, order(asked));
  }

  private static Seq<BackendName> order(AttentionRequest asked) {
    AttentionLayerSpec layer = asked.layer();
    if (layer.kvCacheDtype().label().startsWith("turboquant")) {
      return TURBOQUANT;
    }
    if (layer.choosesKeys()) {
      return SPARSE;
    }
    if (layer.cachesLatents()) {
      return LATENT;
    }
    return asked.mmPrefix() || layer.dtype() == DType.FP32 ? TRITON : FLASH;
  }

  /** No compute capability is known here. A sparse layer runs its prefills as it runs decodes. */
  @Override
  public Validation<Seq<InvalidReason>, LatentPrefill> latentPrefill(
      BackendName decode,
      AttentionRequest asked,
      AttentionConfig config,
      LatentPrefillRegistry.Snapshot registered) {
    return asked.layer().choosesKeys()
        ? Validation.valid(LatentPrefill.none(LatentPrefill.NO_DENSE_PATH))
        : LatentPrefillOrder.withoutCapability(asked, config, registered);
  }

  @Override
  public Seq<PriorityList> priorityLists() {
    return Vector.of(
        new PriorityList("standard", "XPU", "TurboQuant cache", TURBOQUANT),
        new PriorityList("standard", "XPU", "images see both ways, or fp32", TRITON),
        new PriorityList("standard", "XPU", "", FLASH),
        new PriorityList("mla", "XPU", "sparse", SPARSE),
        new PriorityList("mla", "XPU", "", LATENT));
  }
}
