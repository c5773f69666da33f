package bifocal.cuda.bench;

import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaEvent;
import bifocal.cuda.driver.CudaStream;
import java.util.Arrays;

/**
 * Times launches by events, each after other data was read through the device's cache, on a device
 * that is warm.
 */
final class GpuTimer implements AutoCloseable {
  private static final long WARM_NANOS = 30_000_000;
  private static final double BUDGET_MILLISECONDS = 30;
  private static final int LEAST = 10;
  private static final int MOST = 50;

  private final CudaStream stream;
  private final CudaEvent start;
  private final CudaEvent end;
  private final Runnable flush;

  /**
   * @param flush launches that read more than the device's cache holds
   */
  GpuTimer(CudaContext context, CudaStream stream, Runnable flush) {
    this.stream = stream;
    this.start = CudaEvent.timed(context);
    this.end = CudaEvent.timed(context);
    this.flush = flush;
  }

  /** Median milliseconds of some launches. */
  double median(Runnable launches) {
    long until = System.nanoTime() + WARM_NANOS;
    do {
      for (int i = 0; i < 3; i++) {
        launches.run();
      }
      stream.synchronize();
    } while (System.nanoTime() < until);
    double[] times = new double[MOST];
    int count = 0;
    double spent = 0;
    while (count < LEAST || (spent < BUDGET_MILLISECONDS && count < MOST)) {
      times[count] = once(launches);
      spent += times[count++];
    }
    double[] sorted = Arrays.copyOf(times, count);
    Arrays.sort(sorted);
    return sorted[count / 2];
  }

  /**
   * Medians of two launches that take turns, so that both meet the same clocks.
   *
   * @return milliseconds of the first and of the second
   */
  double[] medians(Runnable first, Runnable second) {
    median(first);
    median(second);
    double[] firsts = new double[MOST];
    double[] seconds = new double[MOST];
    for (int i = 0; i < MOST; i++) {
      firsts[i] = once(first);
      seconds[i] = once(second);
    }
    Arrays.sort(firsts);
    Arrays.sort(seconds);
    return new double[] {firsts[MOST / 2], seconds[MOST / 2]};
  }

  private double once(Runnable launches) {
    flush.run();
    start.record(stream);
    launches.run();
    end.record(stream);
    end.synchronize();
    return end.millisecondsSince(start);
  }

  @Override
  public void close() {
    start.close();
    end.close();
  }
}
