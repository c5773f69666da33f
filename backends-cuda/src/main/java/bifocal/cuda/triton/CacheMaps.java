package bifocal.cuda.triton;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.tensor.DType;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.PreparedLaunch;
import bifocal.cuda.driver.TensorMap;
import bifocal.cuda.pack.KernelArgument;
import java.lang.foreign.Arena;

/** A cache by tensor maps of its keys and its values. */
final class CacheMaps extends CacheArguments {
  private static final int DIMENSIONS = 4;

  private final CudaContext context;
  private final PreparedLaunch launch;
  private final CacheGeometry geometry;
  private final Side keys;
  private final Side values;

  /** One side's map and the positions of its parameters. */
  private record Side(
      TensorMap map,
      int index,
      int firstShape,
      int firstStride,
      TensorMap.Element element,
      int[] box,
      TensorMap.Swizzle swizzle) {}

  CacheMaps(
      CudaContext context,
      LoadedKernel kernel,
      PreparedLaunch launch,
      CacheGeometry geometry,
      Arena arena) {
    this.context = context;
    this.launch = launch;
    this.geometry = geometry;
    this.keys = side(kernel, "k_map", arena);
    this.values = side(kernel, "v_map", arena);
  }

  private static Side side(LoadedKernel kernel, String name, Arena arena) {
    KernelArgument argument = kernel.argument(name);
    if (!(argument.kind() instanceof KernelArgument.Kind.TensorMap map)) {
      throw new IllegalStateException(name + " is no tensor map");
    }
    int[] box = new int[DIMENSIONS];
    for (int i = 0; i < DIMENSIONS; i++) {
      box[i] = map.box().get(DIMENSIONS - 1 - i);
    }
    return new Side(
        TensorMap.allocate(arena),
        kernel.index(name),
        kernel.index(name + "_shape_0"),
        kernel.index(name + "_stride_0"),
        argument.element().equals(DType.FP16.label())
            ? TensorMap.Element.FLOAT16
            : TensorMap.Element.BFLOAT16,
        box,
        TensorMap.Swizzle.values()[map.swizzle()]);
  }

  @Override
  void change(KvCacheView view, long base) {
    change(keys, view, base);
    change(values, view, base + geometry.valueOffset());
  }

  private void change(Side side, KvCacheView view, long address) {
    KvCacheSpec spec = view.spec();
    int bytes = geometry.elementBytes();
    long block = view.blockStride() / bytes;
    side.map()
        .encode(
            context,
            new TensorMap.Description(
                side.element(),
                address,
                new long[] {spec.headSize(), spec.numKvHeads(), spec.blockSize(), view.numBlocks()},
                new long[] {geometry.head() * bytes, geometry.slot() * bytes, view.blockStride()},
                side.box(),
                side.swizzle(),
                false));
    launch.setTensorMap(side.index(), side.map());
    launch.setInt(side.firstShape(), view.numBlocks());
    launch.setInt(side.firstShape() + 1, spec.blockSize());
    launch.setInt(side.firstShape() + 2, spec.numKvHeads());
    launch.setInt(side.firstShape() + 3, spec.headSize());
    launch.setLong(side.firstStride(), block);
    launch.setLong(side.firstStride() + 1, geometry.slot());
    launch.setLong(side.firstStride() + 2, geometry.head());
    launch.setLong(side.firstStride() + 3, 1);
  }
}
