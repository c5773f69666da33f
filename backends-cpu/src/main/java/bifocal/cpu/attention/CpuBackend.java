package bifocal.cpu.attention;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.BatchLimits;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.cpu.kernel.HeadPath;

/** What the CPU's backends share: they run the same kernels and differ in the masks they read. */
abstract sealed class CpuBackend implements AttentionBackend<CpuAttentionMetadata>
    permits CpuAttnBackend, FlexAttentionBackend {
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

  private AttentionLayerSpec.Dense requireServed(AttentionLayerSpec layer) {
    AttentionLayerSpec.Dense dense =
        switch (layer) {
          case AttentionLayerSpec.Dense d -> d;
          case AttentionLayerSpec.Mla mla -> throw notExecutable("latent attention");
          case AttentionLayerSpec.SparseMla sparse ->
              throw notExecutable("sparse latent attention");
          case AttentionLayerSpec.BlockSparse sparse ->
              throw BifocalException.of(
                  ErrorCode.UNSUPPORTED, name().value(), "block-sparse attention", "a dense layer");
        };
    if (HeadPath.of(dense.headSize(), dense.headSizeV()).isEmpty()) {
      throw BifocalException.of(
          ErrorCode.UNSUPPORTED,
          "head size on " + name(),
          dense.headSize() + "/" + dense.headSizeV(),
          HeadPath.headSizes());
    }
    return dense;
  }

  private BifocalException notExecutable(String what) {
    return BifocalException.of(ErrorCode.MLA_NOT_EXECUTABLE, name().value(), what, "a dense layer");
  }
}
