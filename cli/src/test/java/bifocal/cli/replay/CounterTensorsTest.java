package bifocal.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import bifocal.cli.replay.CounterTensors.Kind;
import bifocal.core.tensor.DType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

final class CounterTensorsTest {
  private static float[] numbers(CounterTensors tensors, Kind kind, int position, int head) {
    float[] numbers = new float[256];
    tensors.read(kind, 3, 1, position, head, 256, numbers);
    return numbers;
  }

  @Test
  void whatIsWrittenIsWhatIsRead() {
    for (int length : new int[] {1, 2, 3, 64, 254}) {
      CounterTensors tensors = new CounterTensors(5, DType.BF16, 0.3, length);
      float[] read = new float[length];
      tensors.read(Kind.KEY, 0, 0, 17, 2, length, read);
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment written = arena.allocate(2L * length);
        tensors.write(Kind.KEY, 0, 0, 17, 2, length, written, 0);
        for (int d = 0; d < length; d++) {
          int bits = written.getAtIndex(ValueLayout.JAVA_SHORT, d) << 16;
          assertThat(Float.intBitsToFloat(bits)).isEqualTo(read[d]);
        }
      }
    }
  }

  @Test
  void kindsPositionsHeadsAndSeedsDiffer() {
    CounterTensors tensors = new CounterTensors(5, DType.FP32, 1, 256);

    assertThat(numbers(tensors, Kind.KEY, 9, 0))
        .isNotEqualTo(numbers(tensors, Kind.VALUE, 9, 0))
        .isNotEqualTo(numbers(tensors, Kind.KEY, 10, 0))
        .isNotEqualTo(numbers(tensors, Kind.KEY, 9, 1))
        .isNotEqualTo(numbers(new CounterTensors(6, DType.FP32, 1, 256), Kind.KEY, 9, 0));
  }

  @Test
  void elementsHaveMeanZeroAndTheAskedDeviation() {
    CounterTensors tensors = new CounterTensors(1, DType.FP32, 0.25, 256);
    double sum = 0;
    double squares = 0;
    for (int position = 0; position < 400; position++) {
      for (float number : numbers(tensors, Kind.VALUE, position, 0)) {
        sum += number;
        squares += number * number;
      }
    }
    int count = 400 * 256;
    assertThat(sum / count).isCloseTo(0, within(0.003));
    assertThat(Math.sqrt(squares / count)).isCloseTo(0.25, within(0.003));
  }
}
