package bifocal.cpu.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.Platform;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.select.DeviceDescription;
import bifocal.core.select.KnownBackend;
import bifocal.core.select.LatentPolicy;
import bifocal.core.select.PlatformPolicy;
import bifocal.core.select.PriorityList;
import bifocal.core.select.SelectionPlan;
import bifocal.core.select.SelectionRequest;
import io.vavr.collection.LinkedHashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * How the host processor chooses. The reference takes {@code CPU_ATTN} whatever the layer; here a
 * candidate must be valid, and what {@code CPU_ATTN} lacks comes behind it, or before it where
 * images see their own future.
 */
public final class CpuPolicy implements PlatformPolicy {
  private static final BackendName COMPOSITE = BackendName.of("FLEX_CPU_ATTN");
  private static final Seq<BackendName> DENSE =
      Vector.of(KnownBackend.CPU_ATTN.backend(), KnownBackend.FLEX_ATTENTION.backend());
  private static final Seq<BackendName> WITH_IMAGES = DENSE.prepend(COMPOSITE);

  private final LatentPolicy latent;

  /** The policy of dense layers, and another for latent ones. */
  public CpuPolicy(LatentPolicy latent) {
    this.latent = latent;
  }

  /** The processor of this host. */
  public static DeviceProfile thisHost() {
    return new DeviceProfile.Cpu(HostProcessor.isa(), LinkedHashSet.empty(), false);
  }

  @Override
  public Platform platform() {
    return Platform.CPU;
  }

  @Override
  public Option<DeviceProfile> probe() {
    return Option.some(thisHost());
  }

  @Override
  public DeviceProfile simulate(DeviceDescription description) {
    return new DeviceProfile.Cpu(
        description.isa().getOrElse(HostProcessor::isa), description.packages(), true);
  }

  @Override
  public SelectionPlan plan(SelectionRequest request) {
    AttentionRequest asked = request.asked();
    return switch (asked.layer()) {
      case AttentionLayerSpec.Dense dense ->
          SelectionPlan.byPriority(asked, asked.mmPrefix() ? WITH_IMAGES : DENSE);
      case AttentionLayerSpec.Mla mla -> latent.plan(request, asked);
      case AttentionLayerSpec.SparseMla sparse -> noSparse(asked);
      case AttentionLayerSpec.BlockSparse sparse -> noSparse(asked);
    };
  }

  private static SelectionPlan noSparse(AttentionRequest asked) {
    return SelectionPlan.byPriority(asked, Vector.empty())
        .noting("Sparse Attention is not supported on CPU.");
  }

  @Override
  public Seq<PriorityList> priorityLists() {
    return Vector.of(
            new PriorityList("standard", "CPU", "", DENSE),
            new PriorityList("standard", "CPU", "images see both ways", WITH_IMAGES))
        .appendAll(CpuLatent.printed());
  }
}
