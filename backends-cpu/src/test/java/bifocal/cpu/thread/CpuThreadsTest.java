package bifocal.cpu.thread;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

final class CpuThreadsTest {
  private static final CpuThreads THREADS = new CpuThreads(new ThreadBudget(4, "test"));

  /** Counts how often each piece ran, and fails if two threads share a worker number. */
  private static final class Counting extends CpuJob {
    private final AtomicIntegerArray runs;
    private final AtomicIntegerArray busy = new AtomicIntegerArray(4);

    Counting(int pieces) {
      runs = new AtomicIntegerArray(pieces);
    }

    @Override
    protected void run(int worker, long piece) {
      if (busy.incrementAndGet(worker) != 1) {
        throw new IllegalStateException("worker " + worker + " is two threads");
      }
      runs.incrementAndGet((int) piece);
      busy.decrementAndGet(worker);
    }

    void requireEach(int times) {
      for (int piece = 0; piece < runs.length(); piece++) {
        assertThat(runs.get(piece)).as("runs of piece %d", piece).isEqualTo(times);
      }
    }
  }

  @Test
  void everyPieceRunsOnceInEachRun() {
    Counting job = new Counting(37);
    for (int run = 0; run < 3000; run++) {
      THREADS.run(job, 37, 4);
    }
    job.requireEach(3000);
  }

  @Test
  void parkedHelpersWakeUp() {
    Counting job = new Counting(8);
    for (int run = 0; run < 5; run++) {
      LockSupport.parkNanos(2_000_000);
      THREADS.run(job, 8, 4);
    }
    job.requireEach(5);
  }

  @Test
  void helpersTakePieces() {
    Set<String> names = ConcurrentHashMap.newKeySet();
    CountDownLatch two = new CountDownLatch(2);
    THREADS.run(
        new CpuJob() {
          @Override
          protected void run(int worker, long piece) {
            names.add(Thread.currentThread().getName());
            two.countDown();
            awaitQuietly(two);
          }
        },
        2,
        2);
    assertThat(names).hasSize(2);
  }

  @Test
  void oneWorkerIsTheCaller() {
    Set<Thread> seen = ConcurrentHashMap.newKeySet();
    THREADS.run(
        new CpuJob() {
          @Override
          protected void run(int worker, long piece) {
            seen.add(Thread.currentThread());
          }
        },
        50,
        1);
    assertThat(seen).containsExactly(Thread.currentThread());
  }

  @Test
  void aFailureReachesTheCallerAndTheNextRunIsWell() {
    CpuJob failing =
        new CpuJob() {
          @Override
          protected void run(int worker, long piece) {
            if (piece == 5) {
              throw new IllegalStateException("piece 5");
            }
          }
        };
    for (int run = 0; run < 20; run++) {
      assertThatThrownBy(() -> THREADS.run(failing, 100, 4))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("piece 5");
    }
    Counting job = new Counting(10);
    THREADS.run(job, 10, 4);
    job.requireEach(1);
  }

  @Test
  void anInterruptStaysAndTheJobEnds() {
    Counting job = new Counting(200);
    Thread.currentThread().interrupt();
    try {
      THREADS.run(job, 200, 4);
    } finally {
      assertThat(Thread.interrupted()).as("still interrupted").isTrue();
    }
    job.requireEach(1);
  }

  @Test
  void severalCallersShareTheHelpers() throws InterruptedException {
    Counting[] jobs = {new Counting(23), new Counting(31), new Counting(5)};
    Thread[] callers = new Thread[jobs.length];
    for (int c = 0; c < jobs.length; c++) {
      Counting job = jobs[c];
      Thread.Builder builder = c == 0 ? Thread.ofVirtual() : Thread.ofPlatform();
      callers[c] =
          builder.start(
              () -> {
                for (int run = 0; run < 500; run++) {
                  THREADS.run(job, job.runs.length(), 4);
                }
              });
    }
    for (Thread caller : callers) {
      caller.join();
    }
    for (Counting job : jobs) {
      job.requireEach(500);
    }
  }

  @Test
  void helpersEndWithTheJvm() {
    THREADS.run(new Counting(4), 4, 4);
    assertThat(Thread.getAllStackTraces().keySet())
        .filteredOn(thread -> thread.getName().startsWith("bifocal-cpu-"))
        .isNotEmpty()
        .allMatch(Thread::isDaemon);
  }

  private static void awaitQuietly(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
