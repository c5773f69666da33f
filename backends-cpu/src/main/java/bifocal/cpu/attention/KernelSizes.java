package bifocal.cpu.attention;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.cpu.cache.CpuPackedLayout;
import bifocal.cpu.cache.KernelType;
import bifocal.cpu.kernel.AttendParams;
import bifocal.cpu.kernel.CpuKernels;
import java.lang.foreign.Arena;

/**
 * What the kernels want for a layer.
 *
 * @param queryTile query tokens of one work item
 * @param scratchBytes scratch of one thread, a multiple of 64
 */
record KernelSizes(int queryTile, long scratchBytes) {
  private static final long ALIGNMENT = 64;

  static KernelSizes of(CpuKernels kernels, AttentionLayerSpec layer, KvCacheSpec cache) {
    try (Arena arena = Arena.ofConfined()) {
      AttendParams params = new AttendParams(arena.allocate(AttendParams.BYTES, Long.BYTES));
      params.describe(
          CpuPackedLayout.Shape.of(cache),
          0,
          0,
          KernelType.of(layer.dtype()).getOrElse(KernelType.FLOAT32),
          layer.numHeads(),
          1,
          0,
          0,
          0);
      int tile = kernels.queryTile(params);
      long bytes = kernels.scratchBytes(params, tile);
      return new KernelSizes(tile, Math.ceilDiv(bytes, ALIGNMENT) * ALIGNMENT);
    }
  }
}
