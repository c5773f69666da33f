package bifocal.cpu.vector;

import static bifocal.cpu.vector.Products.LANES;
import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.Test;

class ExponentialsTest {
  private static final int SCORES = 24 * LANES;

  /** Interpreted or compiled, lanes are summed in one order: equal steps give equal bits. */
  @Test
  void lanesAreSummedByHalves() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment scores = arena.allocate(4L * SCORES, 64);
      Random random = new Random(1);
      for (int call = 0; call < 20_000; call++) {
        for (int i = 0; call % 1000 == 0 && i < SCORES; i++) {
          scores.setAtIndex(ValueLayout.JAVA_FLOAT, i, -10 * random.nextFloat());
        }
        float sum = Exponentials.weigh(scores.address(), 0, SCORES, 0);
        if (call % 1000 == 0) {
          assertThat(sum).as("call %d", call).isEqualTo(byHalves(scores));
        }
      }
    }
  }

  /** Whatever its bits: memory that nobody wrote may hold any. */
  @Test
  void weightOfNaNIsNaN() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment scores = arena.allocate(4L * 3 * LANES, 64);
      for (int bits : new int[] {0x7FC00000, 0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0xFF800123}) {
        for (int at : new int[] {1, LANES + 1, 2 * LANES}) {
          scores.fill((byte) 0);
          scores.setAtIndex(ValueLayout.JAVA_INT, at, bits);
          float sum = Exponentials.weigh(scores.address(), 1, 2 * LANES + 1, 0);
          assertThat(sum).as("sum, %x at %d", bits, at).isNaN();
          assertThat(scores.getAtIndex(ValueLayout.JAVA_FLOAT, at)).as("weight, %x", bits).isNaN();
        }
      }
    }
  }

  /** What the weights that were left in place of the scores add up to. */
  private static float byHalves(MemorySegment weights) {
    float[] lanes = new float[LANES];
    for (int i = 0; i < SCORES; i++) {
      lanes[i % LANES] += weights.getAtIndex(ValueLayout.JAVA_FLOAT, i);
    }
    for (int half = LANES / 2; half > 0; half /= 2) {
      for (int lane = 0; lane < half; lane++) {
        lanes[lane] += lanes[lane + half];
      }
    }
    return lanes[0];
  }
}
