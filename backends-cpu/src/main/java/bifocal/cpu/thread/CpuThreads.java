package bifocal.cpu.thread;

import io.vavr.control.Try;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * The threads that CPU kernels run on. The caller works too; helpers join it. Several callers may
 * run jobs at once and share the helpers.
 *
 * <p>A helper without work spins for a moment, because the next layer follows within microseconds,
 * and then parks.
 */
public final class CpuThreads {
  private static final int JOBS = 16;
  private static final long SPIN_NANOS = 50_000;
  private static final int SPINS_PER_LOOK = 16;

  private final ThreadBudget budget;
  private final Worker[] helpers;
  private final AtomicReferenceArray<@Nullable CpuJob> jobs = new AtomicReferenceArray<>(JOBS);

  /** Starts one helper less than the budget; they are daemons. */
  public CpuThreads(ThreadBudget budget) {
    this.budget = budget;
    this.helpers = new Worker[budget.threads() - 1];
    for (int i = 0; i < helpers.length; i++) {
      helpers[i] = new Worker(i + 1);
      helpers[i].thread.start();
    }
  }

  private static final class Shared {
    static final Try<CpuThreads> THREADS =
        Try.of(() -> new CpuThreads(ThreadBudget.ofThisProcess()));
  }

  /**
   * The threads of this JVM, started when first asked for.
   *
   * @throws bifocal.core.error.BifocalException {@code INVALID_OPTION}, as {@link
   *     ThreadBudget#ofThisProcess}
   */
  public static CpuThreads shared() {
    return Shared.THREADS.get();
  }

  /** Threads of one job at most, the caller included. */
  public int threads() {
    return budget.threads();
  }

  /** How many threads, and why. */
  public ThreadBudget budget() {
    return budget;
  }

  /**
   * Runs a job to its end on the calling thread and, if there are several workers, helpers. A
   * failure of a piece ends the job and is thrown here. An interrupt does not end the job; the
   * thread stays interrupted.
   *
   * @param pieces pieces to run
   * @param workers threads to use at most, the caller included
   */
  public void run(CpuJob job, long pieces, int workers) {
    job.begin(pieces, workers);
    int slot = workers > 1 && pieces > 1 && helpers.length > 0 ? publish(job) : -1;
    if (slot >= 0) {
      wake((int) Math.min(Math.min(workers, pieces) - 1, helpers.length));
    }
    job.work(0);
    if (slot >= 0) {
      jobs.set(slot, null);
      awaitHelpers(job);
    }
    Throwable failure = job.failure();
    if (failure != null) {
      throw CpuThreads.<RuntimeException>unchecked(failure);
    }
  }

  private int publish(CpuJob job) {
    for (int slot = 0; slot < JOBS; slot++) {
      if (jobs.compareAndSet(slot, null, job)) {
        return slot;
      }
    }
    return -1;
  }

  private void wake(int count) {
    for (int i = 0; i < count; i++) {
      Worker helper = helpers[i];
      if (helper.parked) {
        LockSupport.unpark(helper.thread);
      }
    }
  }

  private static void awaitHelpers(CpuJob job) {
    for (int spins = 0; job.helpers.get() != 0; spins++) {
      if (spins % 1024 == 1023) {
        Thread.yield();
      } else {
        Thread.onSpinWait();
      }
    }
  }

  @SuppressWarnings("unchecked")
  private static <T extends Throwable> T unchecked(Throwable thrown) throws T {
    throw (T) thrown;
  }

  private final class Worker implements Runnable {
    private static final AtomicInteger COUNT = new AtomicInteger();

    private final int number;
    private final Thread thread;
    private volatile boolean parked;

    Worker(int number) {
      this.number = number;
      this.thread =
          Thread.ofPlatform()
              .daemon()
              .name("bifocal-cpu-" + COUNT.incrementAndGet())
              .unstarted(this);
    }

    @Override
    public void run() {
      long idleSince = System.nanoTime();
      while (true) {
        if (help()) {
          idleSince = System.nanoTime();
        } else if (System.nanoTime() - idleSince > SPIN_NANOS) {
          park();
          idleSince = System.nanoTime();
        } else {
          for (int i = 0; i < SPINS_PER_LOOK; i++) {
            Thread.onSpinWait();
          }
        }
      }
    }

    @SuppressWarnings("ReferenceEquality") // The same job, not an equal one.
    private boolean help() {
      boolean helped = false;
      for (int slot = 0; slot < JOBS; slot++) {
        CpuJob job = jobs.get(slot);
        if (job != null && job.hasPieces()) {
          job.helpers.incrementAndGet();
          // The caller takes the job away before it looks for helpers, so one of the two sees the
          // other.
          if (jobs.get(slot) == job) {
            job.work(number);
            helped = true;
          }
          job.helpers.decrementAndGet();
        }
      }
      return helped;
    }

    private void park() {
      parked = true;
      if (!anyWork()) {
        LockSupport.park(CpuThreads.this);
      }
      parked = false;
    }

    private boolean anyWork() {
      for (int slot = 0; slot < JOBS; slot++) {
        CpuJob job = jobs.get(slot);
        if (job != null && job.hasPieces()) {
          return true;
        }
      }
      return false;
    }
  }
}
