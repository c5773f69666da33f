package bifocal.composite;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.Feature;
import bifocal.core.backend.InvalidReason;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Child;
import bifocal.core.route.RoutingPolicy;
import java.util.Locale;

/**
 * One child's part in a composite: what it is asked for. A child that the policy never hands an
 * image to sees requests, groups and batches without images.
 *
 * @param carriesImages whether it applies image masks by itself
 * @param lowered whether it may get runs cut out of requests
 * @param divided whether it may get some of a batch's requests
 */
record Part<M extends AttentionMetadata>(
    Child child,
    AttentionBackend<M> backend,
    boolean carriesImages,
    boolean lowered,
    boolean divided) {

  static <M extends AttentionMetadata> Part<M> of(
      Child child, AttentionBackend<M> backend, RoutingPolicy policy) {
    return new Part<>(
        child,
        backend,
        policy.carriesImages(child),
        child == Child.B && policy.lowers(),
        policy.splits());
  }

  /** Put before the names of the child's workspace regions. */
  String prefix() {
    return child.name().toLowerCase(Locale.ROOT) + "/";
  }

  AttentionRequest view(AttentionRequest request) {
    return carriesImages
        ? request
        : new AttentionRequest(
            withoutImages(request.layer()),
            request.device(),
            request.blockSize(),
            request.deployment().withModelSeesImages(false));
  }

  LayerGroup view(LayerGroup group) {
    return carriesImages || !group.mask().seesImages()
        ? group
        : new LayerGroup(group.name(), withoutImages(group.spec()), group.layers());
  }

  AttentionLayerSpec view(AttentionLayerSpec layer) {
    return carriesImages ? layer : withoutImages(layer);
  }

  CommonAttentionMetadata view(CommonAttentionMetadata batch) {
    return carriesImages ? batch : batch.withoutImages();
  }

  /** The largest batch the child gets when the composite gets this one: each query may be a run. */
  BatchLimits view(BatchLimits limits) {
    return lowered
        ? new BatchLimits(
            Math.max(limits.maxRequests(), limits.maxQueryTokens()),
            limits.maxQueryTokens(),
            limits.maxSeqLen())
        : limits;
  }

  /** Whether the child reads requests that lie anywhere in the batch. */
  boolean indirect() {
    return backend.capabilities().all().has(Feature.INDIRECT_REQUESTS);
  }

  /** Bytes of block table rows that may have to be copied together for the child. */
  long blockTableBytes(BatchLimits limits, KvCacheSpec cache) {
    return (lowered || divided) && !indirect()
        ? (long) Integer.BYTES * view(limits).maxRequests() * cache.blocksFor(limits.maxSeqLen())
        : 0;
  }

  /** The child's reason, under the child's name. */
  InvalidReason named(InvalidReason reason) {
    return reason.saidBy(backend.name());
  }

  private static AttentionLayerSpec withoutImages(AttentionLayerSpec layer) {
    if (!layer.mask().seesImages()) {
      return layer;
    }
    return switch (layer) {
      case AttentionLayerSpec.Dense dense -> withoutImages(dense);
      case AttentionLayerSpec.Mla mla -> withoutImages(mla);
      case AttentionLayerSpec.SparseMla sparse ->
          new AttentionLayerSpec.SparseMla(withoutImages(sparse.latent()), sparse.indexTopk());
      case AttentionLayerSpec.BlockSparse sparse ->
          new AttentionLayerSpec.BlockSparse(
              withoutImages(sparse.dense()), sparse.sparseBlockSize(), sparse.topkBlocks());
    };
  }

  private static AttentionLayerSpec.Dense withoutImages(AttentionLayerSpec.Dense dense) {
    return dense.withMask(dense.mask().withImages(ImageMask.NONE));
  }

  private static AttentionLayerSpec.Mla withoutImages(AttentionLayerSpec.Mla mla) {
    return mla.withMask(mla.mask().withImages(ImageMask.NONE));
  }
}
