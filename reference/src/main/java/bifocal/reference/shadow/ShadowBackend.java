package bifocal.reference.shadow;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.Execution;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayout;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.workspace.WorkspacePlan;
import io.vavr.collection.Set;
import io.vavr.control.Option;

/**
 * A backend beside which another runs every batch, over the same cache, only to be compared with
 * it. The primary writes the cache, and its output is the result; whatever the shadow does is heard
 * by the listener alone. It can do what both can, and runs outside captured graphs.
 *
 * <p>Both outputs must be readable by the host.
 *
 * @param <P> metadata of the primary
 * @param <S> metadata of the shadow
 */
public final class ShadowBackend<P extends AttentionMetadata, S extends AttentionMetadata>
    implements AttentionBackend<ShadowMetadata<P, S>> {
  static final String PRIMARY = "primary/";
  static final String SHADOW = "shadow/";
  static final String OUT = "shadow_out";
  static final String LSE = "shadow_lse";

  private final AttentionBackend<P> primary;
  private final AttentionBackend<S> shadow;
  private final ShadowListener listener;

  private ShadowBackend(
      AttentionBackend<P> primary, AttentionBackend<S> shadow, ShadowListener listener) {
    this.primary = primary;
    this.shadow = shadow;
    this.listener = listener;
  }

  /** Two backends, of which the first one counts. */
  public static <P extends AttentionMetadata, S extends AttentionMetadata> ShadowBackend<P, S> of(
      AttentionBackend<P> primary, AttentionBackend<S> shadow, ShadowListener listener) {
    return new ShadowBackend<>(primary, shadow, listener);
  }

  /** The primary's name: the results are its own. */
  @Override
  public BackendName name() {
    return primary.name();
  }

  /** The backend that counts. */
  public AttentionBackend<P> primary() {
    return primary;
  }

  /** The backend that is compared with it. */
  public AttentionBackend<S> shadow() {
    return shadow;
  }

  @Override
  public Capabilities capabilities() {
    return shared(primary.capabilities(), shadow.capabilities().all());
  }

  @Override
  public Capabilities capabilities(AttentionRequest request) {
    return shared(primary.capabilities(request), shadow.capabilities(request).all());
  }

  private static Capabilities shared(Capabilities own, FeatureSet other) {
    return new Capabilities(shared(own.reference(), other), shared(own.extensions(), other));
  }

  /** Devices are asked about in {@link #checkCombination}; a log-sum-exp is the primary's own. */
  private static FeatureSet shared(FeatureSet own, FeatureSet other) {
    Set<String> layouts = other.kvLayouts().map(KvLayout::name).toLinkedSet();
    return new FeatureSet(
        own.dtypes().intersect(other.dtypes()),
        own.kvCacheDtypes().intersect(other.kvCacheDtypes()),
        own.blockSizes().intersect(other.blockSizes()),
        own.headSizes().intersect(other.headSizes()),
        own.types().intersect(other.types()).filter(AttentionType::usesKvCache),
        own.imageMasks().intersect(other.imageMasks()),
        own.features()
            .filter(
                feature ->
                    other.has(feature) || feature == Feature.LSE || feature == Feature.LSE_BASE_2),
        own.kvLayouts().filter(layout -> layouts.contains(layout.name())),
        own.devices());
  }

  @Override
  public Option<InvalidReason> checkCombination(AttentionRequest request) {
    return primary
        .checkCombination(request)
        .orElse(() -> device(request))
        .orElse(() -> shadow.checkCombination(request).map(this::ofShadow));
  }

  private Option<InvalidReason> device(AttentionRequest request) {
    FeatureSet features = shadow.capabilities(request).all();
    return Option.when(
        !features.devices().accepts(request.device()),
        () ->
            ofShadow(
                new InvalidReason(
                    ReasonCode.DEVICE,
                    "compute capability not supported",
                    request.device().label(),
                    features.devices().toString())));
  }

  private InvalidReason ofShadow(InvalidReason reason) {
    return new InvalidReason(
        reason.code(),
        "shadow " + shadow.name() + ": " + reason.text(),
        reason.seen(),
        reason.wanted());
  }

  @Override
  public Set<ReasonCode> combinationReads() {
    return primary.combinationReads().union(shadow.combinationReads());
  }

  @Override
  public Option<InvalidReason> missingOnThisHost(AttentionRequest request) {
    return primary
        .missingOnThisHost(request)
        .orElse(() -> shadow.missingOnThisHost(request).map(this::ofShadow));
  }

  @Override
  public Execution execution() {
    return primary.execution();
  }

  @Override
  public WorkspacePlan workspace(LayerGroup group, KvCacheSpec cache, BatchLimits limits) {
    long vectors = Math.multiplyExact((long) limits.maxQueryTokens(), group.spec().numHeads());
    return WorkspacePlan.overlay(
            PRIMARY,
            primary.workspace(group, cache, limits),
            SHADOW,
            shadow.workspace(group, cache, limits))
        .withScratch(
            OUT, Math.multiplyExact(vectors, (long) group.spec().headSizeV() * Float.BYTES))
        .withScratch(LSE, Math.multiplyExact(vectors, (long) Float.BYTES));
  }

  @Override
  public AttentionMetadataBuilder<ShadowMetadata<P, S>> createBuilder(
      LayerGroup group, KvCacheSpec cache) {
    AttentionMetadataBuilder<P> own = primary.createBuilder(group, cache);
    try {
      return new ShadowBuilder<>(own, shadow.createBuilder(group, cache), listener);
    } catch (RuntimeException | Error failure) {
      close(own, failure);
      throw failure;
    }
  }

  @Override
  public AttentionImpl<ShadowMetadata<P, S>> createImpl(
      AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
    AttentionImpl<P> own = primary.createImpl(layer, parameters, cache);
    try {
      return new ShadowImpl<>(
          own,
          shadow.createImpl(layer, parameters, cache),
          parameters,
          shadow.capabilities().all().has(Feature.LSE),
          listener);
    } catch (RuntimeException | Error failure) {
      close(own, failure);
      throw failure;
    }
  }

  /** Closes what was opened before a failure. */
  private static void close(AutoCloseable opened, Throwable failure) {
    try {
      opened.close();
    } catch (Exception another) {
      failure.addSuppressed(another);
    }
  }

  @Override
  public String toString() {
    return primary.name() + " shadowed by " + shadow.name();
  }
}
