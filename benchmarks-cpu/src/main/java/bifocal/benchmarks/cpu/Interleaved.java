package bifocal.benchmarks.cpu;

import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Takes turns: each round times everybody once, beginning with another, so that whatever else the
 * machine does meets all of them and nobody is always first. One thread is measured by its CPU
 * time, which other processes disturb least; several by the wall clock.
 *
 * @param threads that each competitor uses
 * @param rounds at most
 * @param patienceNanos no further round begins after so long, once there were three
 */
record Interleaved(int threads, int rounds, long patienceNanos) {
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
  private static final int FEWEST_ROUNDS = 3;
  private static final long SAMPLE_NANOS = 10_000_000;
  private static final long WARM_UP_NANOS = 2_000_000_000L;
  private static final int STEADY_RUNS = 4;
  private static final int MILLIS_BETWEEN = 3;

  /**
   * Something timed.
   *
   * @param amount of one run, counted in 10^9 for the rate
   */
  record Entrant(String name, double amount, Runnable run) {}

  /** The median rate of each entrant, by name, in 10^9 per second. */
  Map<String, Double> medians(Seq<Entrant> entrants) {
    entrants.forEach(this::warmUp);
    List<List<Double>> rates =
        entrants.map(entrant -> (List<Double>) new ArrayList<Double>()).asJava();
    long start = System.nanoTime();
    for (int round = 0;
        round < rounds && (round < FEWEST_ROUNDS || System.nanoTime() - start < patienceNanos);
        round++) {
      for (int i = 0; i < entrants.size(); i++) {
        int turn = (i + round) % entrants.size();
        rates.get(turn).add(rate(entrants.get(turn)));
      }
    }
    Map<String, Double> medians = LinkedHashMap.empty();
    for (int i = 0; i < entrants.size(); i++) {
      medians = medians.put(entrants.get(i).name(), median(rates.get(i)));
    }
    return medians;
  }

  /** Runs until the compilers have nothing to add. */
  private void warmUp(Entrant entrant) {
    long start = System.nanoTime();
    long best = Long.MAX_VALUE;
    int steady = 0;
    while (steady < STEADY_RUNS && System.nanoTime() - start < WARM_UP_NANOS) {
      long before = clock();
      entrant.run().run();
      long took = clock() - before;
      steady = took > 0.95 * best ? steady + 1 : 0;
      best = Math.min(best, took);
    }
  }

  private double rate(Entrant entrant) {
    pause();
    long start = clock();
    long took = 0;
    int repeats = 0;
    while (took < SAMPLE_NANOS * threads) {
      entrant.run().run();
      took = clock() - start;
      repeats++;
    }
    return entrant.amount() * repeats / took;
  }

  /** Lets the threads of the one before go to sleep. */
  private void pause() {
    if (threads > 1) {
      try {
        Thread.sleep(MILLIS_BETWEEN);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private long clock() {
    return threads == 1 ? THREADS.getCurrentThreadCpuTime() : System.nanoTime();
  }

  static double median(List<Double> values) {
    List<Double> sorted = new ArrayList<>(values);
    Collections.sort(sorted);
    int middle = sorted.size() / 2;
    return sorted.size() % 2 == 1
        ? sorted.get(middle)
        : (sorted.get(middle - 1) + sorted.get(middle)) / 2;
  }
}
