package bifocal.cuda.triton;

import bifocal.core.cache.KvCacheView;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.PreparedLaunch;
import java.lang.foreign.Arena;

/**
 * Where a kernel takes the cache. It is set again only when another cache comes, so a step does not
 * pay for it.
 */
abstract sealed class CacheArguments permits CacheAddresses, CacheMaps {
  private long address = Long.MIN_VALUE;
  private long blockStride = -1;
  private int numBlocks = -1;

  static CacheArguments of(
      CudaContext context,
      LoadedKernel kernel,
      PreparedLaunch launch,
      CacheGeometry geometry,
      LayerConstants constants,
      Arena arena) {
    return kernel.index("k_map") == LoadedKernel.NONE
        ? new CacheAddresses(kernel, launch, geometry, constants)
        : new CacheMaps(context, kernel, launch, geometry, arena);
  }

  /** Sets the cache. */
  final void set(KvCacheView view) {
    long base = view.memory().address();
    if (base != address || view.blockStride() != blockStride || view.numBlocks() != numBlocks) {
      change(view, base);
      address = base;
      blockStride = view.blockStride();
      numBlocks = view.numBlocks();
    }
  }

  abstract void change(KvCacheView view, long base);
}
