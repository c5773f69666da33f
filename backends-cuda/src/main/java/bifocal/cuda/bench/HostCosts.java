package bifocal.cuda.bench;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.cache.KvCacheDtype;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.memory.CudaMemory;
import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;

/**
 * What a step costs the host, for 64 decodes of 1024 keys.
 *
 * @param backend its name
 * @param forwardMicros median microseconds of a forward until it returns
 * @param launches kernels of a forward
 * @param buildMicros median microseconds of a build
 * @param forwardBytes bytes of Java heap that one forward allocates
 */
record HostCosts(
    String backend, double forwardMicros, int launches, double buildMicros, double forwardBytes) {
  static final GpuWork WORK = GpuWork.decode(32, 8, 128, 64, 1024, KvCacheDtype.AUTO);

  /** The same for wider heads. */
  static final GpuWork WIDE = GpuWork.decode(32, 16, 256, 64, 1024, KvCacheDtype.AUTO);

  private static final int WARM = 3_000;
  private static final int ROUNDS = 400;
  private static final int PER_ROUND = 16;

  static <M extends AttentionMetadata> HostCosts measure(
      AttentionBackend<M> backend,
      GpuWork work,
      CudaLaunchContext launch,
      CudaMemory memory,
      RandomNumbers numbers) {
    try (GpuScene<M> scene = new GpuScene<>(backend, work, launch, memory, numbers)) {
      for (int i = 0; i < WARM; i++) {
        scene.forward();
        scene.rebuild();
        settle(launch, i);
      }
      double forward = median(launch, scene::forward);
      double build = median(launch, scene::rebuild);
      return new HostCosts(
          backend.name().value(), forward, 1, build, allocated(launch, scene::forward));
    }
  }

  private static void settle(CudaLaunchContext launch, int i) {
    if (i % PER_ROUND == 0) {
      launch.queue().synchronize();
    }
  }

  /** The device is idle when a round begins, so that no queue fills up. */
  private static double median(CudaLaunchContext launch, Runnable call) {
    double[] times = new double[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
      launch.queue().synchronize();
      long start = System.nanoTime();
      for (int i = 0; i < PER_ROUND; i++) {
        call.run();
      }
      times[round] = (System.nanoTime() - start) / 1e3 / PER_ROUND;
    }
    Arrays.sort(times);
    return times[ROUNDS / 2];
  }

  private static double allocated(CudaLaunchContext launch, Runnable call) {
    if (!(ManagementFactory.getThreadMXBean() instanceof ThreadMXBean threads)) {
      return Double.NaN;
    }
    double least = Double.POSITIVE_INFINITY;
    for (int round = 0; round < 5; round++) {
      launch.queue().synchronize();
      long before = threads.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < ROUNDS; i++) {
        call.run();
      }
      least =
          Math.min(least, (double) (threads.getCurrentThreadAllocatedBytes() - before) / ROUNDS);
    }
    return least;
  }
}
