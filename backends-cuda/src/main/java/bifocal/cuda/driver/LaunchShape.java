package bifocal.cuda.driver;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;

/**
 * What is fixed about the launches of a kernel.
 *
 * @param threads threads of a block
 * @param sharedBytes dynamic shared memory of a block
 * @param clusterBlocks blocks of a cluster along x; 1 for none
 * @param overlapping whether a launch may begin before the one before it in the stream has ended,
 *     which the kernel must wait for itself
 * @param cooperative whether all blocks must run at once
 */
public record LaunchShape(
    int threads, int sharedBytes, int clusterBlocks, boolean overlapping, boolean cooperative) {
  private static final int MOST_THREADS = 1024;

  public LaunchShape {
    if (threads < 1 || threads > MOST_THREADS || sharedBytes < 0 || clusterBlocks < 1) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "shape of a launch",
          threads + " threads, " + sharedBytes + " shared bytes, clusters of " + clusterBlocks,
          "1.." + MOST_THREADS + " threads, no negative size, clusters of at least 1");
    }
  }

  /** No cluster, no overlap, not cooperative. */
  public static LaunchShape of(int threads, int sharedBytes) {
    return new LaunchShape(threads, sharedBytes, 1, false, false);
  }

  /** The same launches, each allowed to begin before the one before it has ended. */
  public LaunchShape overlap() {
    return new LaunchShape(threads, sharedBytes, clusterBlocks, true, cooperative);
  }

  /** The same launches in clusters of so many blocks along x. */
  public LaunchShape clusters(int blocks) {
    return new LaunchShape(threads, sharedBytes, blocks, overlapping, cooperative);
  }
}
