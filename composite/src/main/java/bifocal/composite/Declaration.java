package bifocal.composite;

import bifocal.core.backend.FeatureSet;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayout;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import io.vavr.collection.Seq;

/**
 * What a composite declares, held against a layer and a cache before a child is made for them: the
 * children know their own bounds, not those that come of being composed.
 */
record Declaration(CompositeBackend<?, ?> composite, FeatureSet features) {

  static Declaration of(CompositeBackend<?, ?> composite) {
    return new Declaration(composite, composite.capabilities().all());
  }

  /**
   * Requires a layer and a cache within the declaration.
   *
   * @throws BifocalException {@code UNSUPPORTED} or {@code KV_INCOMPATIBLE}
   */
  void require(AttentionLayerSpec layer, KvCacheSpec cache) {
    requireLayer(layer);
    requireCache(layer, cache);
  }

  private void requireLayer(AttentionLayerSpec layer) {
    unless(
        features.types().contains(layer.type()),
        ErrorCode.UNSUPPORTED,
        "attention type",
        layer.type().label(),
        features.types().map(type -> type.label()).mkString(", "));
    unless(
        features.dtypes().contains(layer.dtype()),
        ErrorCode.UNSUPPORTED,
        "dtype",
        layer.dtype(),
        features.dtypes().mkString(", "));
    unless(
        features.headSizes().accepts(layer.headSize()),
        ErrorCode.UNSUPPORTED,
        "head size",
        layer.headSize(),
        features.headSizes());
    unless(
        !layer.mask().seesImages() || features.imageMasks().contains(layer.mask().images()),
        ErrorCode.UNSUPPORTED,
        "image mask",
        layer.mask().images().label(),
        features.imageMasks().map(mask -> mask.label()).mkString(", "));
  }

  private void requireCache(AttentionLayerSpec layer, KvCacheSpec cache) {
    Seq<String> layouts = features.kvLayouts().map(KvLayout::name);
    unless(
        layouts.contains(cache.layout().name()),
        ErrorCode.KV_INCOMPATIBLE,
        "KV cache layout",
        cache.layout().name(),
        layouts.mkString(", "));
    unless(
        features.blockSizes().accepts(cache.blockSize()),
        ErrorCode.KV_INCOMPATIBLE,
        "KV cache block size",
        cache.blockSize(),
        features.blockSizes());
    unless(
        features.kvCacheDtypes().exists(type -> type.resolve(layer.dtype()) == cache.dtype()),
        ErrorCode.KV_INCOMPATIBLE,
        "KV cache dtype",
        cache.dtype(),
        features.kvCacheDtypes().mkString(", "));
  }

  private void unless(boolean declared, ErrorCode code, String what, Object seen, Object wanted) {
    if (!declared) {
      throw BifocalException.of(code, what + " for " + composite.name(), seen, wanted)
          .withRemedy("choose another backend, or another layer or cache");
    }
  }
}
