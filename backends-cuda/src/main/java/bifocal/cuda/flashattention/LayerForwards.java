package bifocal.cuda.flashattention;

import bifocal.core.cache.KvCacheView;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.flashattention.FlashAttentionStep.Call;
import bifocal.tvm.DeviceStream;
import org.jspecify.annotations.Nullable;

/**
 * The prepared calls of one layer, one for each forward. They are made anew only when another
 * cache, stream or thread comes, so a step does not pay for them.
 */
final class LayerForwards {
  private final ForwardDevice device;
  private final AttentionLayerSpec.Dense layer;
  private @Nullable ForwardCall causal;
  private @Nullable ForwardCall bounded;
  private @Nullable CacheSides sides;
  private @Nullable DeviceStream stream;

  LayerForwards(ForwardDevice device, AttentionLayerSpec.Dense layer) {
    this.device = device;
    this.layer = layer;
  }

  void run(
      CudaLaunchContext launch,
      Call call,
      int tokens,
      TensorView q,
      KvCacheView view,
      TensorView out,
      TensorView sums) {
    CacheSides both = sides(view);
    prepared(call, both, q).run(stream(launch), call, tokens, q, both, out, sums);
  }

  private CacheSides sides(KvCacheView view) {
    CacheSides known = sides;
    if (known == null || known.view() != view) {
      known = CacheSides.of(view);
      sides = known;
    }
    return known;
  }

  private DeviceStream stream(CudaLaunchContext launch) {
    DeviceStream known = stream;
    if (known == null || known.handle() != launch.stream()) {
      known = DeviceStream.of(launch.device(), launch.stream());
      stream = known;
    }
    return known;
  }

  private ForwardCall prepared(Call call, CacheSides both, TensorView rows) {
    ForwardCall known = call.key().window() ? bounded : causal;
    if (known == null || known.owner() != Thread.currentThread()) {
      known = new ForwardCall(device.function(call.key()), layer, call, both, rows);
      if (call.key().window()) {
        bounded = known;
      } else {
        causal = known;
      }
    }
    return known;
  }
}
