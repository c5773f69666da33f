package bifocal.cpu.attention;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendValidator;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.InvalidReason;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.device.DeviceProfile;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.workspace.WorkspacePlan;
import io.vavr.collection.HashSet;

/** What the CPU's backends share: they run the same kernels and differ in the masks they read. */
abstract sealed class CpuBackend implements AttentionBackend<CpuAttentionMetadata>
    permits CpuAttnBackend, FlexAttentionBackend {
  private static final BackendValidator VALIDATOR =
      new BackendValidator(BackendValidator.Scope.EXECUTION);
  private static final DeviceProfile HOST =
      new DeviceProfile.Cpu(DeviceProfile.CpuIsa.GENERIC, HashSet.empty(), false);

  private final CpuRuntime runtime;
  private final boolean readsImages;

  CpuBackend(CpuRuntime runtime, boolean readsImages) {
    this.runtime = runtime;
    this.readsImages = readsImages;
  }

  @Override
  public final WorkspacePlan workspace(LayerGroup group, KvCacheSpec cache, BatchLimits limits) {
    requireServed(group.spec());
    return CpuMetadataBuilder.workspace(runtime, group, cache, limits);
  }

  @Override
  public final AttentionMetadataBuilder<CpuAttentionMetadata> createBuilder(
      LayerGroup group, KvCacheSpec cache) {
    requireServed(group.spec());
    return new CpuMetadataBuilder(runtime, group, cache, readsImages);
  }

  @Override
  public final AttentionImpl<CpuAttentionMetadata> createImpl(
      AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
    return new CpuAttentionImpl(runtime, requireServed(layer), parameters, cache);
  }

  /** The layer, if it is what this backend declares. */
  private AttentionLayerSpec.Dense requireServed(AttentionLayerSpec layer) {
    return switch (layer) {
      case AttentionLayerSpec.Dense dense -> requireDeclared(dense);
      case AttentionLayerSpec.Mla mla -> throw notExecutable("latent attention");
      case AttentionLayerSpec.SparseMla sparse -> throw notExecutable("sparse latent attention");
      case AttentionLayerSpec.BlockSparse sparse -> throw notExecutable("block-sparse attention");
    };
  }

  private AttentionLayerSpec.Dense requireDeclared(AttentionLayerSpec.Dense layer) {
    AttentionRequest request = AttentionRequest.of(layer, HOST);
    VALIDATOR
        .validate(this, request)
        .swap()
        .forEach(
            reasons -> {
              throw BifocalException.of(
                  ErrorCode.UNSUPPORTED,
                  "layer on " + name(),
                  reasons.map(InvalidReason::text).mkString(", "),
                  reasons.map(InvalidReason::wanted).mkString(", "));
            });
    return layer;
  }

  private BifocalException notExecutable(String what) {
    return BifocalException.of(ErrorCode.MLA_NOT_EXECUTABLE, name().value(), what, "a dense layer");
  }
}
