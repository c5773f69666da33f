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
 * machine does meets all of them, nobody is always first, and nobody always finds the caches as the
 * same one left them. One thread is measured by its CPU time, which other processes disturb least;
 * several by the wall clock.
 *
 * @param threads that each competitor uses
 * @param rounds at most
 * @param patienceNanos no further round begins after so long, once there were three
 * @param sampleNanos an entrant's turn lasts so long at least, for each thread
 * @param sameThreads whether all entrants compute with the same threads; otherwise those of the one
 *     before are given time to go to sleep
 */
record Interleaved(
    int threads, int rounds, long patienceNanos, long sampleNanos, boolean sameThreads) {
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
  private static final int FEWEST_ROUNDS = 3;
  private static final long SAMPLE_NANOS = 10_000_000;
  private static final long WARM_UP_NANOS = 2_000_000_000L;
  private static final int STEADY_RUNS = 4;
  private static final int MILLIS_BETWEEN = 3;

  /** Of entrants with threads of their own, in turns of ten milliseconds. */
  Interleaved(int threads, int rounds, long patienceNanos) {
    this(threads, rounds, patienceNanos, SAMPLE_NANOS, false);
  }

  /**
   * Something timed.
   *
   * @param amount of one run, counted in 10^9 for the rate
   */
  record Entrant(String name, double amount, Runnable run) {}

  /**
   * What was measured.
   *
   * @param rates of each entrant by round, in 10^9 per second
   */
  record Turns(Map<String, List<Double>> rates) {
    /** The median rate of each entrant. */
    Map<String, Double> medians() {
      return rates.mapValues(Interleaved::median);
    }

    /**
     * The median over the rounds of one entrant's time over another's in the same round, so that
     * what changes from round to round changes neither.
     */
    double timeOver(String entrant, String other) {
      List<Double> own = rates.get(entrant).get();
      List<Double> others = rates.get(other).get();
      List<Double> ratios = new ArrayList<>();
      for (int round = 0; round < own.size(); round++) {
        ratios.add(others.get(round) / own.get(round));
      }
      return median(ratios);
    }
  }

  /** The median rate of each entrant, by name, in 10^9 per second. */
  Map<String, Double> medians(Seq<Entrant> entrants) {
    return turns(entrants).medians();
  }

  /** Lets everybody take turns. */
  Turns turns(Seq<Entrant> entrants) {
    entrants.forEach(this::warmUp);
    List<List<Double>> rates =
        entrants.map(entrant -> (List<Double>) new ArrayList<Double>()).asJava();
    long start = System.nanoTime();
    for (int round = 0;
        round < rounds && (round < FEWEST_ROUNDS || System.nanoTime() - start < patienceNanos);
        round++) {
      for (int place = 0; place < entrants.size(); place++) {
        int turn = turn(round, place, entrants.size());
        rates.get(turn).add(rate(entrants.get(turn)));
      }
    }
    Map<String, List<Double>> byName = LinkedHashMap.empty();
    for (int i = 0; i < entrants.size(); i++) {
      byName = byName.put(entrants.get(i).name(), rates.get(i));
    }
    return new Turns(byName);
  }

  /** Who is next: over twice as many rounds as entrants, each comes behind each other as often. */
  static int turn(int round, int place, int entrants) {
    int away = place % 2 == 1 ? (place + 1) / 2 : entrants - place / 2;
    boolean mirrored = round / entrants % 2 == 1;
    return Math.floorMod(round + (mirrored ? -away : away), entrants);
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
    while (took < sampleNanos * threads) {
      entrant.run().run();
      took = clock() - start;
      repeats++;
    }
    return entrant.amount() * repeats / took;
  }

  /** Lets the threads of the one before go to sleep. */
  private void pause() {
    if (threads > 1 && !sameThreads) {
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
