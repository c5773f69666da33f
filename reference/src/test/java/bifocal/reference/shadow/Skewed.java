package bifocal.reference.shadow;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.TensorView;
import bifocal.reference.ReferenceBackend;
import bifocal.reference.ReferenceMetadata;
import java.util.function.Consumer;

/** The reference, with something done to its output; it refuses to write the cache. */
record Skewed(ReferenceBackend reference, Capabilities capabilities, Consumer<AttentionOutput> skew)
    implements AttentionBackend<ReferenceMetadata> {
  @Override
  public BackendName name() {
    return BackendName.of("SKEWED");
  }

  @Override
  public AttentionMetadataBuilder<ReferenceMetadata> createBuilder(
      LayerGroup group, KvCacheSpec cache) {
    return reference.createBuilder(group, cache);
  }

  @Override
  public AttentionImpl<ReferenceMetadata> createImpl(
      AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
    AttentionImpl<ReferenceMetadata> own = reference.createImpl(layer, parameters, cache);
    return new AttentionImpl<>() {
      @Override
      public void writeKv(
          LaunchContext launch, KvInput input, KvCacheView view, SlotMapping slots) {
        throw new AssertionError("a shadow never writes the cache");
      }

      @Override
      public void forward(
          LaunchContext launch,
          TensorView q,
          KvCacheView view,
          ReferenceMetadata metadata,
          AttentionOutput output) {
        own.forward(launch, q, view, metadata, output);
        skew.accept(output);
      }
    };
  }
}
