package bifocal.cuda.triton;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.driver.PreparedLaunch;
import bifocal.cuda.pack.GridWord;
import java.lang.foreign.Arena;

/** Launches that write a step's keys and values into the cache. */
final class WriteLaunch {
  private final PreparedLaunch launch;
  private final CacheArguments cache;
  private final int programs;
  private final Side keys;
  private final Side values;
  private final int slots;

  private record Side(int from, int strideToken, int strideHead) {
    static Side of(LoadedKernel kernel, String name) {
      return new Side(
          kernel.index(name),
          kernel.index(name + "_stride_token"),
          kernel.index(name + "_stride_head"));
    }

    void set(PreparedLaunch launch, TensorView tensor) {
      launch.setLong(from, tensor.address());
      launch.setLong(strideToken, tensor.stride(0));
      launch.setLong(strideHead, tensor.stride(1));
    }
  }

  WriteLaunch(
      CudaContext context,
      LoadedKernel kernel,
      KvCacheSpec spec,
      CacheGeometry geometry,
      LayerConstants constants,
      Arena arena) {
    this.launch = kernel.prepare(arena);
    this.keys = Side.of(kernel, "key");
    this.values = Side.of(kernel, "value");
    this.slots = kernel.index("slot_mapping");
    this.programs =
        kernel.entry().grid().y() instanceof GridWord.KvHeadsBy by
            ? Math.ceilDiv(spec.numKvHeads(), by.heads())
            : spec.numKvHeads();
    this.cache = CacheArguments.of(context, kernel, launch, geometry, constants, arena);
    launch.setInt(kernel.index("num_kv_heads"), spec.numKvHeads());
    launch.setInt(kernel.index("block_size"), spec.blockSize());
    launch.setLong(kernel.index("global_scratch"), 0);
    launch.setLong(kernel.index("profile_scratch"), 0);
  }

  /**
   * @param slotMapping device address of the slots
   */
  void run(
      CudaStream stream,
      TensorView key,
      TensorView value,
      KvCacheView view,
      long slotMapping,
      int tokens) {
    keys.set(launch, key);
    values.set(launch, value);
    cache.set(view);
    launch.setLong(slots, slotMapping);
    launch.launch(stream, tokens, programs, 1);
  }
}
