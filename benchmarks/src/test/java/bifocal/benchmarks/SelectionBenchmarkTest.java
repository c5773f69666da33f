package bifocal.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The benchmark runs once, and stays within bounds that a loaded machine keeps, too. */
class SelectionBenchmarkTest {
  private static final int CALLS = 2_000;
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private final SelectionBenchmark benchmark = new SelectionBenchmark();

  @BeforeEach
  void prepare() {
    benchmark.prepare();
  }

  @Test
  void bothWaysSelectTheSameBackend() {
    assertThat(benchmark.again().get().backend()).isEqualTo(benchmark.first().get().backend());
  }

  @Test
  void aWarmSelectionTakesUnder50MicrosecondsAndAllocatesUnder32KiB() {
    run();
    long bytes = THREADS.getCurrentThreadAllocatedBytes();
    long start = System.nanoTime();
    run();
    long nanoseconds = (System.nanoTime() - start) / CALLS;
    long allocated = (THREADS.getCurrentThreadAllocatedBytes() - bytes) / CALLS;

    assertThat(nanoseconds).isLessThan(50_000);
    assertThat(allocated).isLessThan(32 * 1024);
  }

  private void run() {
    for (int i = 0; i < CALLS; i++) {
      assertThat(benchmark.again().isValid()).isTrue();
    }
  }
}
