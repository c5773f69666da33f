package bifocal.reference;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.Execution;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayout;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import io.vavr.collection.Set;

/**
 * The reference as a backend: every dense layer and mask, on any cache layout, in plain Java. It
 * stands in where a platform is simulated, beside another backend in shadow mode, and as a child in
 * tests. It is never chosen by itself. Memory must be readable by the host.
 */
public final class ReferenceBackend implements AttentionBackend<ReferenceMetadata> {
  /** {@code REFERENCE}. */
  public static final BackendName NAME = BackendName.of("REFERENCE");

  private final Capabilities capabilities;

  private ReferenceBackend(Capabilities capabilities) {
    this.capabilities = capabilities;
  }

  /** The reference over caches of these layouts, preferred first. */
  public static ReferenceBackend over(KvLayout... layouts) {
    return new ReferenceBackend(
        new Capabilities(FeatureSet.NONE, everything().withKvLayouts(layouts)));
  }

  private static FeatureSet everything() {
    return FeatureSet.NONE
        .withDtypes(DType.FP32, DType.FP16, DType.BF16)
        .withKvCacheDtypes(
            KvCacheDtype.AUTO,
            KvCacheDtype.FLOAT32,
            KvCacheDtype.FLOAT16,
            KvCacheDtype.BFLOAT16,
            KvCacheDtype.FP8,
            KvCacheDtype.FP8_E4M3,
            KvCacheDtype.FP8_E5M2,
            KvCacheDtype.INT8_PER_TOKEN_HEAD,
            KvCacheDtype.FP8_PER_TOKEN_HEAD)
        .withBlockSizes(BlockSizes.ANY)
        .withHeadSizes(HeadSizes.ANY)
        .withTypes(AttentionType.values())
        .withImageMasks(ImageMask.OVERRIDE, ImageMask.CLAMP_PAST, ImageMask.CLAMP_BOTH)
        .withFeatures(
            Feature.SINK,
            Feature.NON_CAUSAL,
            Feature.NON_CAUSAL_LEFT_WINDOW,
            Feature.RIGHT_WINDOW,
            Feature.SLIDING_WINDOW,
            Feature.CHUNKED_LOCAL,
            Feature.SOFTCAP,
            Feature.ALIBI,
            Feature.HEAD_SIZE_V,
            Feature.BATCH_INVARIANCE,
            Feature.PER_HEAD_QUANT_SCALES,
            Feature.KV_SCALES,
            Feature.LSE,
            Feature.INDIRECT_REQUESTS)
        .withDevices(DeviceSupport.on(Platform.values()));
  }

  @Override
  public BackendName name() {
    return NAME;
  }

  @Override
  public Capabilities capabilities() {
    return capabilities;
  }

  @Override
  public Execution execution() {
    return new Execution(Execution.Status.REFERENCE_ONLY, "PLAIN_JAVA: runs on the host alone");
  }

  @Override
  public AttentionMetadataBuilder<ReferenceMetadata> createBuilder(
      LayerGroup group, KvCacheSpec cache) {
    dense(group.spec());
    return (step, builtGroup, batch) -> build(step, builtGroup, batch);
  }

  private static ReferenceMetadata build(
      StepContext step, LayerGroup group, CommonAttentionMetadata batch) {
    step.launch().requireOwner();
    batch.requireWholeImages(group.mask());
    return new ReferenceMetadata(batch);
  }

  @Override
  public AttentionImpl<ReferenceMetadata> createImpl(
      AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
    AttentionLayerSpec.Dense dense = dense(layer);
    if (dense.type().usesKvCache()) {
      requireReadable(dense, cache);
    }
    return new ReferenceImpl(ReferenceAttention.of(dense, parameters), cache);
  }

  private void requireReadable(AttentionLayerSpec.Dense layer, KvCacheSpec cache) {
    Set<KvCacheDtype> types = capabilities.all().kvCacheDtypes();
    if (!types.exists(type -> type.resolve(layer.dtype()) == cache.dtype())) {
      throw BifocalException.of(
          ErrorCode.KV_INCOMPATIBLE,
          "type of the cache of " + NAME,
          cache.dtype(),
          types.mkString(", "));
    }
  }

  private static AttentionLayerSpec.Dense dense(AttentionLayerSpec layer) {
    return switch (layer) {
      case AttentionLayerSpec.Dense dense -> dense;
      case AttentionLayerSpec.Mla mla -> throw notExecutable("latent attention");
      case AttentionLayerSpec.SparseMla sparse -> throw notExecutable("sparse latent attention");
      case AttentionLayerSpec.BlockSparse sparse ->
          throw BifocalException.of(
              ErrorCode.UNSUPPORTED, "layer of " + NAME, "block-sparse attention", "dense");
    };
  }

  private static BifocalException notExecutable(String kind) {
    return BifocalException.of(
        ErrorCode.MLA_NOT_EXECUTABLE, "layer of " + NAME, kind, "dense attention");
  }
}
