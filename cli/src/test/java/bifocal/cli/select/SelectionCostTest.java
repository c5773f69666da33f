package bifocal.cli.select;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.device.Platform;
import bifocal.core.select.SelectionRequest;
import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What a selection costs that nobody has asked for before, once the virtual machine is warm. */
class SelectionCostTest {
  private static final int WARM_UP = 20_000;
  private static final int MEASURED = 1_000;
  private static final long SEED = Long.getLong("bifocal.seed", 20_261_129L);
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  /** Each selection's bytes, and the mean of their processor time. */
  private record Cost(long[] bytes, long nanoseconds) {}

  private static Cost cost(Platform platform) {
    Asking.requireInstalled(platform);
    RandomLayers layers = new RandomLayers(platform, SEED);
    Stream.generate(layers::next).limit(WARM_UP).forEach(Asking.SELECTOR::select);
    List<SelectionRequest> requests =
        Stream.generate(layers::next).distinct().limit(MEASURED).toList();
    long[] bytes = new long[MEASURED];
    long start = THREADS.getCurrentThreadCpuTime();
    for (int i = 0; i < MEASURED; i++) {
      long before = THREADS.getCurrentThreadAllocatedBytes();
      Asking.SELECTOR.select(requests.get(i));
      bytes[i] = THREADS.getCurrentThreadAllocatedBytes() - before;
    }
    return new Cost(bytes, (THREADS.getCurrentThreadCpuTime() - start) / MEASURED);
  }

  /** Processor time, since a busy machine makes a thread wait. */
  @ParameterizedTest
  @EnumSource(Platform.class)
  void aSelectionNotAskedForBeforeTakesUnder50MicrosecondsAndAllocatesUnder32KiB(
      Platform platform) {
    Cost cost = cost(platform);

    assertThat(Arrays.stream(cost.bytes()).max().getAsLong())
        .as("most bytes, seed %s", SEED)
        .isLessThan(32 * 1024);
    assertThat(cost.nanoseconds()).as("mean, seed %s", SEED).isLessThan(50_000);
  }
}
