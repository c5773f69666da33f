package bifocal.cuda.pack;

import bifocal.core.backend.BackendName;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;

/** What every backend over a pack requires of a layer, whatever its kernels are. */
public final class ServedLayer {

  private ServedLayer() {}

  /**
   * The layer as the dense one that it has to be.
   *
   * @throws BifocalException {@code MLA_NOT_EXECUTABLE} for any other
   */
  public static AttentionLayerSpec.Dense requireDense(
      BackendName backend, AttentionLayerSpec layer) {
    return switch (layer) {
      case AttentionLayerSpec.Dense dense -> dense;
      case AttentionLayerSpec.Mla mla -> throw notExecutable(backend, "latent attention");
      case AttentionLayerSpec.SparseMla sparse ->
          throw notExecutable(backend, "sparse latent attention");
      case AttentionLayerSpec.BlockSparse sparse ->
          throw notExecutable(backend, "block-sparse attention");
    };
  }

  /**
   * A scale that kernels can fold into exponents of two, and a cache of the layer's heads.
   *
   * @throws BifocalException {@code UNSUPPORTED}, {@code KV_INCOMPATIBLE}
   */
  public static void requireScaleAndHeads(
      BackendName backend, AttentionLayerSpec.Dense layer, KvCacheSpec cache) {
    if (!(layer.scale() > 0)) {
      throw BifocalException.of(
          ErrorCode.UNSUPPORTED,
          "layer on " + backend,
          "scale " + layer.scale(),
          "a positive scale");
    }
    if (cache.numKvHeads() != layer.numKvHeads() || cache.headSize() != layer.headSize()) {
      throw BifocalException.of(
          ErrorCode.KV_INCOMPATIBLE, "heads of a KV cache", cache, "those of the layer");
    }
  }

  private static BifocalException notExecutable(BackendName backend, String what) {
    return BifocalException.of(
        ErrorCode.MLA_NOT_EXECUTABLE, backend.value(), what, "a dense layer");
  }
}
