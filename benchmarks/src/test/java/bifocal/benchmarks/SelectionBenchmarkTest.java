package bifocal.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.select.SelectionRefusal;
import bifocal.core.select.SelectionReport;
import com.sun.management.ThreadMXBean;
import io.vavr.control.Validation;
import java.lang.management.ManagementFactory;
import java.util.function.Supplier;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The benchmark runs once, and stays within bounds that a loaded machine keeps, too. */
@ExtendWith(NeedsCpu.class)
class SelectionBenchmarkTest {
  private static final int CALLS = 4_000;

  /** Rounds until the compilers of the JVM are done with a selection. */
  private static final int WARM_UP = 5;

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
  void aSelectionAskedForAgainStaysWithinItsBounds() {
    staysWithinBounds(benchmark::again);
  }

  @Test
  void aSelectionAskedForTheFirstTimeStaysWithinItsBounds() {
    staysWithinBounds(benchmark::first);
  }

  private static void staysWithinBounds(
      Supplier<Validation<SelectionRefusal, SelectionReport>> selection) {
    for (int round = 0; round < WARM_UP; round++) {
      run(selection);
    }
    long bytes = THREADS.getCurrentThreadAllocatedBytes();
    long start = THREADS.getCurrentThreadCpuTime();
    run(selection);
    long nanoseconds = (THREADS.getCurrentThreadCpuTime() - start) / CALLS;
    long allocated = (THREADS.getCurrentThreadAllocatedBytes() - bytes) / CALLS;

    assertThat(nanoseconds).isLessThan(50_000);
    assertThat(allocated).isLessThan(32 * 1024);
  }

  private static void run(Supplier<Validation<SelectionRefusal, SelectionReport>> selection) {
    for (int i = 0; i < CALLS; i++) {
      assertThat(selection.get().isValid()).isTrue();
    }
  }
}
