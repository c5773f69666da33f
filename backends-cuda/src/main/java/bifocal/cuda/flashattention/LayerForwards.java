package bifocal.cuda.flashattention;

import bifocal.core.cache.KvCacheView;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.driver.StepStreams;
import bifocal.cuda.flashattention.FlashAttentionStep.Call;
import org.jspecify.annotations.Nullable;

/**
 * The prepared calls of one layer, one for each forward. They are made anew only when another
 * cache, stream or thread comes, so a step does not pay for them.
 */
final class LayerForwards {
  private final ForwardDevice device;
  private final AttentionLayerSpec.Dense layer;
  private final StepStreams streams = new StepStreams();
  private final @Nullable ForwardCall[] prepared =
      new ForwardCall[ForwardKey.Sight.values().length];
  private @Nullable CacheSides sides;

  LayerForwards(ForwardDevice device, AttentionLayerSpec.Dense layer) {
    this.device = device;
    this.layer = layer;
  }

  void run(
      CudaStream stream,
      Call call,
      int tokens,
      TensorView q,
      KvCacheView view,
      TensorView out,
      TensorView sums) {
    CacheSides both = sides(view);
    prepared(call, both, q).run(streams.of(stream), call, tokens, q, both, out, sums);
  }

  private CacheSides sides(KvCacheView view) {
    CacheSides known = sides;
    if (known == null || known.view() != view) {
      known = CacheSides.of(view);
      sides = known;
    }
    return known;
  }

  private ForwardCall prepared(Call call, CacheSides both, TensorView rows) {
    int sight = call.key().sight().ordinal();
    ForwardCall known = prepared[sight];
    if (known == null || known.owner() != Thread.currentThread()) {
      known = new ForwardCall(device.function(call.key()), layer, call, both, rows);
      prepared[sight] = known;
    }
    return known;
  }
}
