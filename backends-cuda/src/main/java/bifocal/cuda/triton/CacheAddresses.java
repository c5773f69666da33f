package bifocal.cuda.triton;

import bifocal.core.cache.KvCacheView;
import bifocal.cuda.driver.PreparedLaunch;

/** A cache by addresses and strides. */
final class CacheAddresses extends CacheArguments {
  private final PreparedLaunch launch;
  private final CacheGeometry geometry;
  private final Side keys;
  private final Side values;

  /** Positions of one side's parameters. */
  private record Side(int cache, int strideBlock, int scales, int scaleStrideBlock) {
    static Side of(LoadedKernel kernel, String side) {
      return new Side(
          kernel.index(side + "_cache"),
          kernel.index(side + "_stride_block"),
          kernel.index(side + "_scales"),
          kernel.index(side + "s_stride_block"));
    }
  }

  CacheAddresses(
      LoadedKernel kernel,
      PreparedLaunch launch,
      CacheGeometry geometry,
      LayerConstants constants) {
    this.launch = launch;
    this.geometry = geometry;
    this.keys = Side.of(kernel, "k");
    this.values = Side.of(kernel, "v");
    fix(kernel, "k", constants.keyScales());
    fix(kernel, "v", constants.valueScales());
  }

  private void fix(LoadedKernel kernel, String side, long scalesOfHeads) {
    launch.setLong(kernel.index(side + "_stride_slot"), geometry.slot());
    launch.setLong(kernel.index(side + "_stride_head"), geometry.head());
    launch.setLong(kernel.index(side + "_scales"), scalesOfHeads);
    launch.setLong(kernel.index(side + "s_stride_block"), 0);
    launch.setLong(
        kernel.index(side + "s_stride_slot"), geometry.tokenScales() ? geometry.scaleSlot() : 0);
    launch.setLong(
        kernel.index(side + "s_stride_head"), geometry.tokenScales() ? geometry.scaleHead() : 1);
  }

  @Override
  void change(KvCacheView view, long base) {
    change(keys, view, base, geometry.keyScaleOffset(), 0);
    change(values, view, base, geometry.valueScaleOffset(), geometry.valueOffset());
  }

  private void change(Side side, KvCacheView view, long base, long scaleOffset, long offset) {
    launch.setLong(side.cache(), base + offset);
    launch.setLong(side.strideBlock(), view.blockStride() / geometry.elementBytes());
    if (geometry.tokenScales()) {
      launch.setLong(side.scales(), base + scaleOffset);
      launch.setLong(side.scaleStrideBlock(), view.blockStride() / Float.BYTES);
    }
  }
}
