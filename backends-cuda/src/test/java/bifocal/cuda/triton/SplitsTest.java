package bifocal.cuda.triton;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** How many programs share the keys of a decode tile. */
class SplitsTest {
  private static final int MULTIPROCESSORS = 132;
  private static final int TOGETHER = 64;
  private static final long ROOM = 1_000;

  private static int splits(int resident, long programs, long longest) {
    return new Splits(MULTIPROCESSORS, resident).of(programs, longest, TOGETHER, ROOM);
  }

  @Test
  void programsThatFillTheDeviceAreNotDivided() {
    assertThat(splits(4, 384, 1 << 20)).isEqualTo(1);
    assertThat(splits(2, 192, 1 << 20)).isEqualTo(1);
    assertThat(splits(1, 96, 1 << 20)).isEqualTo(1);
  }

  @Test
  void fewProgramsAreDividedUntilTheDeviceIsFull() {
    assertThat(splits(4, 128, 4096)).isEqualTo(4);
    assertThat(splits(4, 16, 32_768)).isEqualTo(32);
    assertThat(splits(2, 64, 32_768)).isEqualTo(4);
    assertThat(splits(1, 32, 8192)).isEqualTo(4);
    assertThat(splits(4, 1, 1 << 20)).isEqualTo(Splits.MOST);
  }

  @Test
  void noProgramOfAFullRowIsWithoutKeys() {
    for (int resident = 1; resident <= 4; resident++) {
      for (int steps = 1; steps < 700; steps++) {
        int splits = splits(resident, 8, (long) steps * TOGETHER);
        int each = Math.ceilDiv(steps, splits);

        assertThat((splits - 1) * each)
            .as("steps before the last of %d, %d resident", splits, resident)
            .isLessThan(steps);
      }
    }
  }

  @Test
  void twoProgramsAMultiprocessorMayHaveFewKeysAndMoreOnlyMany() {
    assertThat(splits(4, 8, 1024)).isEqualTo(4);
    assertThat(splits(4, 16, 4096)).isEqualTo(16);
    assertThat(splits(4, 32, 8192)).isEqualTo(16);
    assertThat(splits(4, 32, 4096)).isEqualTo(8);
    assertThat(splits(1, 4, 4096)).isEqualTo(16);
  }

  @Test
  void whereEveryMultiprocessorHasAProgramOnlyLongRowsAreDivided() {
    assertThat(splits(4, 256, 4096)).isEqualTo(2);
    assertThat(splits(4, 256, 1024)).isEqualTo(1);
  }

  @Test
  void shortRowsAreNotWorthManyPrograms() {
    assertThat(splits(4, 8, 512)).isEqualTo(2);
    assertThat(splits(4, 8, 0)).isEqualTo(1);
    assertThat(splits(4, 0, 1 << 20)).isEqualTo(1);
  }

  @Test
  void workspaceLimitsTheSplits() {
    Splits splits = new Splits(MULTIPROCESSORS, 4);

    assertThat(splits.of(8, 32_768, TOGETHER, 5)).isEqualTo(5);
    assertThat(splits.of(8, 32_768, TOGETHER, 0)).isEqualTo(1);
  }

  @Test
  void compactBatchesAlwaysHaveRoom() {
    int rows = 16;
    for (int resident = 1; resident <= 4; resident++) {
      for (int programs = 1; programs < 5 * MULTIPROCESSORS; programs++) {
        int splits =
            new Splits(MULTIPROCESSORS, resident)
                .of(programs, Integer.MAX_VALUE, TOGETHER, Integer.MAX_VALUE);
        assertThat(splits == 1 ? 0 : (long) programs * rows * splits)
            .isLessThanOrEqualTo(Splits.partials(MULTIPROCESSORS, rows));
      }
    }
  }
}
