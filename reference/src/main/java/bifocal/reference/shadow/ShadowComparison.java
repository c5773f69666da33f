package bifocal.reference.shadow;

import bifocal.core.backend.AttentionOutput;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheView;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.TensorView;
import bifocal.reference.Agreement;
import bifocal.reference.QueryHead;
import io.vavr.control.Option;

/**
 * One layer's batch, computed by both backends. Tensors and cache are those of the call: they may
 * be read while the listener runs, and not later.
 *
 * @param step number of the step
 * @param group layers that share the batch; the layer is the one whose forward is running
 * @param parameters weights of the layer
 * @param q queries
 * @param primary what the primary wrote, which is the result
 * @param shadow what the shadow wrote
 * @param agreement of the shadow with the primary, per query token and head
 * @param primaryNanos what the primary's forward took
 * @param shadowNanos what the shadow's forward and the comparison took
 */
public record ShadowComparison(
    long step,
    LayerGroup group,
    CommonAttentionMetadata batch,
    LayerParameters parameters,
    TensorView q,
    KvCacheView cache,
    AttentionOutput primary,
    AttentionOutput shadow,
    Agreement agreement,
    long primaryNanos,
    long shadowNanos) {

  /** Where they differ most, absent when they nowhere do. */
  public Option<Place> worst() {
    return agreement.at().map(this::place);
  }

  private Place place(QueryHead at) {
    int request = 0;
    while (at.queryToken() >= batch.queryStart(request) + batch.queryLen(request)
        || at.queryToken() < batch.queryStart(request)) {
      request++;
    }
    int position = batch.firstPosition(request) + at.queryToken() - batch.queryStart(request);
    return new Place(request, position, at.head());
  }

  /**
   * A query in its request.
   *
   * @param request place in the batch
   * @param position of the query token in the request's sequence
   * @param head query head
   */
  public record Place(int request, int position, int head) {}
}
