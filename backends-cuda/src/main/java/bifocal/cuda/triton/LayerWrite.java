package bifocal.cuda.triton;

import bifocal.core.backend.KvInput;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.memory.CacheCheck;

/** The write of a layer's keys and values into its cache; everything is checked before a launch. */
final class LayerWrite {
  private final CacheCheck cache;
  private final TritonTensors tensors;
  private final StreamSlots slots;
  private final WriteLaunch write;

  LayerWrite(TritonDevice device, KvCacheSpec cache, TritonTensors tensors, WriteLaunch write) {
    this.cache = new CacheCheck(cache, CacheGeometry.ALIGNMENT);
    this.tensors = tensors;
    this.slots = new StreamSlots(device);
    this.write = write;
  }

  /** Writes a step's keys and values, on the thread that owns the device. */
  void run(CudaLaunchContext launch, KvInput input, KvCacheView view, SlotMapping mapping) {
    cache.require(launch, view);
    KvInput.Dense dense = requireDense(input);
    long tokens = mapping.tokens();
    tensors.requireKeyValues(dense.k(), "keys", tokens);
    tensors.requireKeyValues(dense.v(), "values", tokens);
    if (tokens > 0) {
      long address = slots.address(launch.queue(), mapping, view);
      write.run(launch.queue(), dense.k(), dense.v(), view, address, Math.toIntExact(tokens));
    }
  }

  private static KvInput.Dense requireDense(KvInput input) {
    return switch (input) {
      case KvInput.Dense dense -> dense;
      case KvInput.Latent latent ->
          throw BifocalException.of(
              ErrorCode.MLA_NOT_EXECUTABLE, "latent keys", "ckv", "keys and values");
    };
  }
}
