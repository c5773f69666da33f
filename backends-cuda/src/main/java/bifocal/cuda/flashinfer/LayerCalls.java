package bifocal.cuda.flashinfer;

import bifocal.core.backend.AttentionOutput;
import bifocal.core.cache.KvCacheView;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.flashinfer.FlashInferStep.Launch;
import bifocal.tvm.DeviceStream;
import org.jspecify.annotations.Nullable;

/**
 * The prepared calls of one layer, one for each module it has run. They are made anew only when
 * another cache, stream or thread comes, so a step does not pay for them.
 */
final class LayerCalls {
  private static final int MOST = 4;
  private static final int ALIGNMENT = 16;

  private final FlashInferDevice device;
  private final AttentionLayerSpec.Dense layer;
  private final @Nullable ModuleKey[] keys = new ModuleKey[MOST];
  private final @Nullable RunCall[] calls = new RunCall[MOST];
  private @Nullable CacheTensors cache;
  private @Nullable DeviceStream stream;

  LayerCalls(FlashInferDevice device, AttentionLayerSpec.Dense layer) {
    this.device = device;
    this.layer = layer;
  }

  void run(
      CudaLaunchContext launch,
      TensorView q,
      KvCacheView view,
      Launch what,
      AttentionOutput output) {
    CacheTensors tensors = tensors(view);
    call(what, tensors, q).call(stream(launch), q, tensors, what, output.out(), output.lse());
  }

  private CacheTensors tensors(KvCacheView view) {
    CacheTensors known = cache;
    if (known == null || known.view() != view) {
      known = CacheTensors.of(view);
      requireAligned(view);
      cache = known;
    }
    return known;
  }

  private static void requireAligned(KvCacheView view) {
    if ((view.memory().address() | view.blockStride()) % ALIGNMENT != 0) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          "address and block stride of a KV cache",
          "0x" + Long.toHexString(view.memory().address()) + ", " + view.blockStride(),
          "multiples of " + ALIGNMENT + " bytes");
    }
  }

  private DeviceStream stream(CudaLaunchContext launch) {
    DeviceStream known = stream;
    if (known == null || known.handle() != launch.stream()) {
      known = DeviceStream.of(launch.device(), launch.stream());
      stream = known;
    }
    return known;
  }

  private RunCall call(Launch what, CacheTensors tensors, TensorView rows) {
    int at = 0;
    while (at < MOST && keys[at] != null && !what.key().equals(keys[at])) {
      at++;
    }
    if (at == MOST) {
      throw new IllegalStateException("a layer runs at most " + MOST + " modules");
    }
    RunCall known = calls[at];
    if (known == null || known.owner() != Thread.currentThread()) {
      known = new RunCall(device.module(what.key()), layer, tensors, what.pageStart(), rows);
      calls[at] = known;
      keys[at] = what.key();
    }
    return known;
  }
}
