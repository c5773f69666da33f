package bifocal.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * What the benchmark's calls allocate, on all threads, and that they compute something. The same
 * figures come from {@code -prof gc}; here they are counted over a fixed number of calls, so that
 * the harness itself does not count.
 */
@ExtendWith(NeedsCpu.class)
final class CompositeStepBenchmarkTest {
  private static final double BUILD_BYTES = 8 * 1024;

  /** Less than the smallest object. */
  private static final double FORWARD_BYTES = 8;

  private static final int CALLS = 1000;
  private static final int MOST_ROUNDS = 20;

  /**
   * Bytes per call once the JVM has compiled the call: until then a vector is an object. The first
   * round within the bound ends the search.
   */
  private static double steadyBytesPerCall(Runnable call, double bound) {
    double bytes = Double.MAX_VALUE;
    for (int round = 0; bytes > bound && round < MOST_ROUNDS; round++) {
      bytes = bytesPerCall(call);
    }
    return bytes;
  }

  private static double bytesPerCall(Runnable call) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long before = threads.getTotalThreadAllocatedBytes();
    for (int i = 0; i < CALLS; i++) {
      call.run();
    }
    return (double) (threads.getTotalThreadAllocatedBytes() - before) / CALLS;
  }

  @ParameterizedTest
  @EnumSource
  void forwardAllocatesNothing(StepScene.Batch batch) {
    try (StepScene<?> scene = StepScene.of("FLEX_CPU_ATTN", batch)) {
      assertThat(steadyBytesPerCall(scene::forward, FORWARD_BYTES)).isLessThan(FORWARD_BYTES);
    }
  }

  @ParameterizedTest
  @EnumSource
  void buildAllocatesAtMostEightKibibytes(StepScene.Batch batch) {
    try (StepScene<?> scene = StepScene.of("FLEX_CPU_ATTN", batch)) {
      double bytes = steadyBytesPerCall(scene::build, BUILD_BYTES);
      assertThat(bytes).isLessThanOrEqualTo(BUILD_BYTES).isPositive();
    }
  }

  @Test
  void whatForwardWritesAreFiniteNumbersThatDiffer() {
    try (StepScene<?> scene = StepScene.of("FLEX_CPU_ATTN", StepScene.Batch.IMAGES)) {
      scene.output().data().fill((byte) 0xff);
      scene.forward();
      float first = number(scene, 0);
      boolean differ = false;
      for (long i = 0; i < scene.output().elements(); i++) {
        assertThat(number(scene, i)).isFinite();
        differ |= number(scene, i) != first;
      }
      assertThat(differ).isTrue();
    }
  }

  private static float number(StepScene<?> scene, long i) {
    return Float.intBitsToFloat(scene.output().data().getAtIndex(ValueLayout.JAVA_SHORT, i) << 16);
  }
}
