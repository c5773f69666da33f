package bifocal.composite;

import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.FeatureSet;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvLayout;
import bifocal.core.device.Platform;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.route.Child;
import bifocal.core.route.RoutingPolicy;
import bifocal.core.tensor.DType;
import io.vavr.collection.LinkedHashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.control.Option;

/** What two children can do together, property by property, in child A's order of preference. */
final class SharedFeatures {
  private final FeatureSet a;
  private final FeatureSet b;
  private final RoutingPolicy policy;

  private SharedFeatures(FeatureSet a, FeatureSet b, RoutingPolicy policy) {
    this.a = a;
    this.b = b;
    this.policy = policy;
  }

  /**
   * What both can do.
   *
   * @param model the data type of a model, which gives {@code auto} one meaning; absent for some
   *     model of one of the types that both run
   */
  static FeatureSet of(FeatureSet a, FeatureSet b, RoutingPolicy policy, Option<DType> model) {
    return new SharedFeatures(a, b, policy)
        .meet(model.fold(() -> a.dtypes().intersect(b.dtypes()), LinkedHashSet::of));
  }

  private FeatureSet meet(Set<DType> models) {
    return new FeatureSet(
        a.dtypes().intersect(b.dtypes()),
        kvCacheDtypes(models),
        a.blockSizes().intersect(b.blockSizes()),
        a.headSizes().intersect(b.headSizes()),
        a.types().intersect(b.types()).filter(this::routable),
        imageMasks(),
        a.features().intersect(b.features()),
        layouts(),
        devices(a.devices(), b.devices()));
  }

  private Set<KvCacheDtype> kvCacheDtypes(Set<DType> models) {
    if (models.isEmpty()) {
      return a.kvCacheDtypes().intersect(b.kvCacheDtypes());
    }
    return a.kvCacheDtypes()
        .union(b.kvCacheDtypes())
        .filter(
            wanted ->
                models.exists(
                    model ->
                        names(a.kvCacheDtypes(), wanted, model)
                            && names(b.kvCacheDtypes(), wanted, model)));
  }

  /** Whether some declared type is, for a model, the same cache as the wanted one. */
  private static boolean names(Set<KvCacheDtype> declared, KvCacheDtype wanted, DType model) {
    return declared.exists(type -> type.resolve(model) == wanted.resolve(model));
  }

  /** Keys outside a cache come back to back, so a batch of them can only go to one child whole. */
  private boolean routable(AttentionType type) {
    return switch (type) {
      case DECODER, ENCODER_DECODER -> true;
      case ENCODER, ENCODER_ONLY -> !policy.splits() && !policy.lowers();
    };
  }

  private Set<ImageMask> imageMasks() {
    boolean byA = policy.carriesImages(Child.A);
    boolean byB = policy.carriesImages(Child.B);
    if (byA && byB) {
      return a.imageMasks().intersect(b.imageMasks());
    }
    return byA ? a.imageMasks() : byB ? b.imageMasks() : LinkedHashSet.empty();
  }

  private Seq<KvLayout> layouts() {
    Set<String> known = b.kvLayouts().map(KvLayout::name).toLinkedSet();
    return a.kvLayouts().filter(layout -> known.contains(layout.name()));
  }

  /** Devices on which both run. */
  static DeviceSupport devices(DeviceSupport left, DeviceSupport right) {
    Set<Platform> platforms = left.platforms().intersect(right.platforms());
    Seq<DeviceSupport.Range> ranges = ranges(left.capabilities(), right.capabilities());
    boolean bounded = !left.capabilities().isEmpty() || !right.capabilities().isEmpty();
    return bounded && ranges.isEmpty()
        ? new DeviceSupport(platforms.remove(Platform.CUDA), ranges)
        : new DeviceSupport(platforms, ranges);
  }

  private static Seq<DeviceSupport.Range> ranges(
      Seq<DeviceSupport.Range> left, Seq<DeviceSupport.Range> right) {
    if (left.isEmpty()) {
      return right;
    }
    return right.isEmpty()
        ? left
        : left.flatMap(l -> right.map(r -> overlap(l, r)))
            .filter(range -> range.least().compareTo(range.most()) <= 0)
            .distinct();
  }

  private static DeviceSupport.Range overlap(DeviceSupport.Range l, DeviceSupport.Range r) {
    return new DeviceSupport.Range(
        l.least().compareTo(r.least()) >= 0 ? l.least() : r.least(),
        l.most().compareTo(r.most()) <= 0 ? l.most() : r.most());
  }
}
