package bifocal.cuda.triton;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** How many programs share the keys of a decode tile. */
class SplitsTest {
  private static final int MULTIPROCESSORS = 132;
  private static final int TOGETHER = 64;
  private static final long ROOM = 1_000;

  private static int splits(long programs, boolean widens, long longest, long room) {
    return Splits.of(programs, MULTIPROCESSORS, widens, longest, TOGETHER, room);
  }

  @Test
  void enoughTilesAreNotDivided() {
    assertThat(splits(512, false, 1 << 20, ROOM)).isEqualTo(1);
    assertThat(splits(128, false, 1 << 20, ROOM)).isEqualTo(1);
  }

  @Test
  void fewTilesAreDividedUntilTheDeviceIsFull() {
    assertThat(splits(8, false, 66_000, ROOM)).isEqualTo(33);
    assertThat(splits(64, false, 32_768, ROOM)).isEqualTo(4);
    assertThat(splits(1, false, 1 << 20, ROOM)).isEqualTo(Splits.MOST);
  }

  @Test
  void noProgramOfAFullRowIsWithoutKeys() {
    assertThat(splits(8, false, 32_768, ROOM)).isEqualTo(32);
    for (int steps = 1; steps < 700; steps++) {
      int splits = splits(8, false, (long) steps * TOGETHER, ROOM);
      int each = Math.ceilDiv(steps, splits);

      assertThat((splits - 1) * each).as("steps before the last of %d", splits).isLessThan(steps);
    }
  }

  @Test
  void quantisedCachesWantTwoProgramsAMultiprocessor() {
    assertThat(splits(128, true, 4096, ROOM)).isEqualTo(2);
    assertThat(splits(200, true, 4096, ROOM)).isEqualTo(1);
    assertThat(splits(512, true, 4096, ROOM)).isEqualTo(1);
  }

  @Test
  void shortRowsAreNotWorthManyPrograms() {
    assertThat(splits(8, false, 512, ROOM)).isEqualTo(2);
    assertThat(splits(8, false, 0, ROOM)).isEqualTo(1);
  }

  @Test
  void workspaceLimitsTheSplits() {
    assertThat(splits(8, false, 32_768, 5)).isEqualTo(5);
    assertThat(splits(8, false, 32_768, 0)).isEqualTo(1);
  }

  @Test
  void compactBatchesAlwaysHaveRoom() {
    int rows = 16;
    for (boolean widens : new boolean[] {false, true}) {
      for (int programs = 1; programs < 3 * MULTIPROCESSORS; programs++) {
        int splits = splits(programs, widens, Integer.MAX_VALUE, Integer.MAX_VALUE);
        assertThat(splits == 1 ? 0 : (long) programs * rows * splits)
            .isLessThanOrEqualTo(Splits.partials(MULTIPROCESSORS, rows));
      }
    }
  }
}
