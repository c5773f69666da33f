package bifocal.cuda.bench;

import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaEvent;
import bifocal.cuda.driver.CudaStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Times launches by events, each after other data was read through the device's cache, on a device
 * that is warm.
 */
final class GpuTimer implements AutoCloseable {
  private static final long WARM_NANOS = 30_000_000;
  private static final double BUDGET_MILLISECONDS = 30;
  private static final int LEAST = 10;
  private static final int MOST = 50;

  private static final int TOGETHER = 5;

  private final CudaStream stream;
  private final List<CudaEvent> starts = new ArrayList<>();
  private final List<CudaEvent> ends = new ArrayList<>();
  private final Runnable flush;

  /**
   * @param flush launches that read more than the device's cache holds
   */
  GpuTimer(CudaContext context, CudaStream stream, Runnable flush) {
    this.stream = stream;
    for (int i = 0; i < TOGETHER; i++) {
      this.starts.add(CudaEvent.timed(context));
      this.ends.add(CudaEvent.timed(context));
    }
    this.flush = flush;
  }

  /** Median milliseconds of some launches. */
  double median(Runnable launches) {
    warm(launches);
    double[] times = new double[MOST];
    int count = 0;
    double spent = 0;
    while (count < LEAST || (spent < BUDGET_MILLISECONDS && count < MOST)) {
      for (double time : several(launches, launches)) {
        times[count++] = time;
        spent += time;
      }
    }
    return median(times, count);
  }

  private void warm(Runnable launches) {
    long until = System.nanoTime() + WARM_NANOS;
    do {
      for (int i = 0; i < 3; i++) {
        launches.run();
      }
      stream.synchronize();
    } while (System.nanoTime() < until);
  }

  private static double median(double[] times, int count) {
    double[] sorted = Arrays.copyOf(times, count);
    Arrays.sort(sorted);
    return sorted[count / 2];
  }

  /**
   * Times two launches in turns; the host does not wait in between, so the device is never idle.
   */
  private double[] several(Runnable even, Runnable odd) {
    for (int i = 0; i < TOGETHER; i++) {
      flush.run();
      starts.get(i).record(stream);
      (i % 2 == 0 ? even : odd).run();
      ends.get(i).record(stream);
    }
    stream.synchronize();
    double[] times = new double[TOGETHER];
    for (int i = 0; i < TOGETHER; i++) {
      times[i] = ends.get(i).millisecondsSince(starts.get(i));
    }
    return times;
  }

  /**
   * Medians of two launches that take turns, so that both meet the same clocks.
   *
   * @return milliseconds of the first and of the second
   */
  double[] medians(Runnable first, Runnable second) {
    warm(first);
    warm(second);
    double[] firsts = new double[MOST];
    double[] seconds = new double[MOST];
    int firstCount = 0;
    int secondCount = 0;
    while (Math.min(firstCount, secondCount) < MOST - TOGETHER) {
      boolean swap = firstCount > secondCount;
      double[] times = swap ? several(second, first) : several(first, second);
      for (int i = 0; i < TOGETHER; i++) {
        if ((i % 2 == 0) != swap) {
          firsts[firstCount++] = times[i];
        } else {
          seconds[secondCount++] = times[i];
        }
      }
    }
    return new double[] {median(firsts, firstCount), median(seconds, secondCount)};
  }

  @Override
  public void close() {
    starts.forEach(CudaEvent::close);
    ends.forEach(CudaEvent::close);
  }
}
