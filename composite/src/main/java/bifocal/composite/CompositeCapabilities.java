package bifocal.composite;

import bifocal.core.backend.Capabilities;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvLayout;
import bifocal.core.layer.AttentionType;
import io.vavr.collection.LinkedHashSet;
import io.vavr.collection.Set;
import java.util.function.BinaryOperator;

/**
 * A composite's capabilities. The reference knows composites of decoder layers that switch off what
 * {@link #BEYOND_REFERENCE} names, whatever the children can do; where both children can, it runs
 * here as an extension.
 */
final class CompositeCapabilities {
  private static final Set<Feature> BEYOND_REFERENCE =
      LinkedHashSet.of(
          Feature.SINK,
          Feature.NON_CAUSAL,
          Feature.NON_CAUSAL_DCP,
          Feature.DCP,
          Feature.PCP,
          Feature.RSWA,
          Feature.MLA,
          Feature.SPARSE,
          Feature.ALIBI_SQRT,
          Feature.BATCH_INVARIANCE,
          Feature.PER_HEAD_QUANT_SCALES,
          Feature.ADAPTIVE_VERIFICATION);

  private CompositeCapabilities() {}

  /**
   * What two children's capabilities make together.
   *
   * @param meet what two declarations share, limits applied
   */
  static Capabilities of(Capabilities a, Capabilities b, BinaryOperator<FeatureSet> meet) {
    FeatureSet all = meet.apply(a.all(), b.all());
    FeatureSet reference =
        all.has(Feature.MLA)
            ? FeatureSet.NONE
            : referencePart(meet.apply(a.reference(), b.reference()));
    return new Capabilities(reference, beyond(all, reference));
  }

  /** What two children's capabilities make together by the reference alone. */
  static Capabilities byReference(Capabilities a, Capabilities b, BinaryOperator<FeatureSet> meet) {
    FeatureSet shared = meet.apply(a.reference(), b.reference());
    return Capabilities.of(shared.has(Feature.MLA) ? FeatureSet.NONE : referencePart(shared));
  }

  private static FeatureSet referencePart(FeatureSet shared) {
    return new FeatureSet(
        shared.dtypes(),
        shared.kvCacheDtypes(),
        shared.blockSizes(),
        shared.headSizes(),
        shared.types().filter(type -> type == AttentionType.DECODER),
        shared.imageMasks(),
        shared.features().removeAll(BEYOND_REFERENCE),
        shared.kvLayouts(),
        shared.devices());
  }

  private static FeatureSet beyond(FeatureSet all, FeatureSet reference) {
    Set<String> layouts = reference.kvLayouts().map(KvLayout::name).toLinkedSet();
    return new FeatureSet(
        all.dtypes().removeAll(reference.dtypes()),
        all.kvCacheDtypes().removeAll(reference.kvCacheDtypes()),
        all.blockSizes().equals(reference.blockSizes()) ? BlockSizes.NONE : all.blockSizes(),
        all.headSizes().equals(reference.headSizes()) ? HeadSizes.NONE : all.headSizes(),
        all.types().removeAll(reference.types()),
        all.imageMasks().removeAll(reference.imageMasks()),
        all.features().removeAll(reference.features()),
        all.kvLayouts().filter(layout -> !layouts.contains(layout.name())),
        all.devices().equals(reference.devices()) ? DeviceSupport.on() : all.devices());
  }
}
