package bifocal.core.backend;

import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvLayout;
import bifocal.core.device.Platform;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import io.vavr.collection.HashSet;
import io.vavr.collection.LinkedHashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.collection.Vector;

/**
 * One complete declaration of what runs.
 *
 * @param dtypes types of queries
 * @param kvCacheDtypes types of the cache, as they may be asked for
 * @param blockSizes kernel block sizes
 * @param headSizes head sizes
 * @param types attention types
 * @param imageMasks ways images may join the mask, {@code NONE} not listed
 * @param features everything that is a yes or a no
 * @param kvLayouts cache layouts it reads and writes, preferred first
 * @param devices where
 */
public record FeatureSet(
    Set<DType> dtypes,
    Set<KvCacheDtype> kvCacheDtypes,
    BlockSizes blockSizes,
    HeadSizes headSizes,
    Set<AttentionType> types,
    Set<ImageMask> imageMasks,
    Set<Feature> features,
    Seq<KvLayout> kvLayouts,
    DeviceSupport devices) {

  /** Declares nothing. */
  public static final FeatureSet NONE =
      new FeatureSet(
          LinkedHashSet.empty(),
          LinkedHashSet.empty(),
          BlockSizes.NONE,
          HeadSizes.NONE,
          LinkedHashSet.empty(),
          LinkedHashSet.empty(),
          LinkedHashSet.empty(),
          Vector.empty(),
          DeviceSupport.on());

  public FeatureSet withDtypes(DType... values) {
    return new FeatureSet(
        LinkedHashSet.of(values),
        kvCacheDtypes,
        blockSizes,
        headSizes,
        types,
        imageMasks,
        features,
        kvLayouts,
        devices);
  }

  public FeatureSet withKvCacheDtypes(KvCacheDtype... values) {
    return new FeatureSet(
        dtypes,
        LinkedHashSet.of(values),
        blockSizes,
        headSizes,
        types,
        imageMasks,
        features,
        kvLayouts,
        devices);
  }

  public FeatureSet withBlockSizes(BlockSizes values) {
    return new FeatureSet(
        dtypes, kvCacheDtypes, values, headSizes, types, imageMasks, features, kvLayouts, devices);
  }

  public FeatureSet withHeadSizes(HeadSizes values) {
    return new FeatureSet(
        dtypes, kvCacheDtypes, blockSizes, values, types, imageMasks, features, kvLayouts, devices);
  }

  public FeatureSet withTypes(AttentionType... values) {
    return new FeatureSet(
        dtypes,
        kvCacheDtypes,
        blockSizes,
        headSizes,
        LinkedHashSet.of(values),
        imageMasks,
        features,
        kvLayouts,
        devices);
  }

  public FeatureSet withImageMasks(ImageMask... values) {
    return new FeatureSet(
        dtypes,
        kvCacheDtypes,
        blockSizes,
        headSizes,
        types,
        LinkedHashSet.of(values),
        features,
        kvLayouts,
        devices);
  }

  public FeatureSet withFeatures(Feature... values) {
    return new FeatureSet(
        dtypes,
        kvCacheDtypes,
        blockSizes,
        headSizes,
        types,
        imageMasks,
        LinkedHashSet.of(values),
        kvLayouts,
        devices);
  }

  public FeatureSet withKvLayouts(KvLayout... values) {
    return new FeatureSet(
        dtypes,
        kvCacheDtypes,
        blockSizes,
        headSizes,
        types,
        imageMasks,
        features,
        Vector.of(values),
        devices);
  }

  public FeatureSet withDevices(DeviceSupport value) {
    return new FeatureSet(
        dtypes,
        kvCacheDtypes,
        blockSizes,
        headSizes,
        types,
        imageMasks,
        features,
        kvLayouts,
        value);
  }

  /** Whether a yes-or-no feature is declared. */
  public boolean has(Feature feature) {
    return features.contains(feature);
  }

  /** What either declares, property by property. */
  public FeatureSet union(FeatureSet other) {
    return new FeatureSet(
        dtypes.union(other.dtypes),
        kvCacheDtypes.union(other.kvCacheDtypes),
        blockSizes.union(other.blockSizes),
        headSizes.union(other.headSizes),
        types.union(other.types),
        imageMasks.union(other.imageMasks),
        features.union(other.features),
        kvLayouts.appendAll(other.kvLayouts).distinctBy(KvLayout::name),
        devices.platforms().isEmpty()
            ? other.devices
            : other.devices.platforms().isEmpty() ? devices : unionOf(devices, other.devices));
  }

  private static DeviceSupport unionOf(DeviceSupport a, DeviceSupport b) {
    boolean everyCapability =
        (a.platforms().contains(Platform.CUDA) && a.capabilities().isEmpty())
            || (b.platforms().contains(Platform.CUDA) && b.capabilities().isEmpty());
    return new DeviceSupport(
        HashSet.ofAll(a.platforms()).union(HashSet.ofAll(b.platforms())),
        everyCapability ? Vector.empty() : a.capabilities().appendAll(b.capabilities()).distinct());
  }
}
