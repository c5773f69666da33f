package bifocal.cuda.triton;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** How many programs share the keys of a decode tile. */
class SplitsTest {
  private static final int MULTIPROCESSORS = 132;
  private static final long ROOM = 1_000;

  @Test
  void enoughTilesAreNotDivided() {
    assertThat(Splits.of(512, MULTIPROCESSORS, false, 1 << 20, ROOM)).isEqualTo(1);
    assertThat(Splits.of(128, MULTIPROCESSORS, false, 1 << 20, ROOM)).isEqualTo(1);
  }

  @Test
  void fewTilesAreDividedUntilTheDeviceIsFull() {
    assertThat(Splits.of(8, MULTIPROCESSORS, false, 32_768, ROOM)).isEqualTo(33);
    assertThat(Splits.of(64, MULTIPROCESSORS, false, 32_768, ROOM)).isEqualTo(4);
    assertThat(Splits.of(1, MULTIPROCESSORS, false, 1 << 20, ROOM)).isEqualTo(Splits.MOST);
  }

  @Test
  void quantisedCachesWantTwoProgramsAMultiprocessor() {
    assertThat(Splits.of(128, MULTIPROCESSORS, true, 4096, ROOM)).isEqualTo(2);
    assertThat(Splits.of(200, MULTIPROCESSORS, true, 4096, ROOM)).isEqualTo(1);
    assertThat(Splits.of(512, MULTIPROCESSORS, true, 4096, ROOM)).isEqualTo(1);
  }

  @Test
  void shortRowsAreNotWorthManyPrograms() {
    assertThat(Splits.of(8, MULTIPROCESSORS, false, 512, ROOM)).isEqualTo(2);
    assertThat(Splits.of(8, MULTIPROCESSORS, false, 0, ROOM)).isEqualTo(1);
  }

  @Test
  void workspaceLimitsTheSplits() {
    assertThat(Splits.of(8, MULTIPROCESSORS, false, 32_768, 5)).isEqualTo(5);
    assertThat(Splits.of(8, MULTIPROCESSORS, false, 32_768, 0)).isEqualTo(1);
  }

  @Test
  void compactBatchesAlwaysHaveRoom() {
    int rows = 16;
    for (boolean widens : new boolean[] {false, true}) {
      for (int programs = 1; programs < 3 * MULTIPROCESSORS; programs++) {
        int splits =
            Splits.of(programs, MULTIPROCESSORS, widens, Integer.MAX_VALUE, Integer.MAX_VALUE);
        assertThat(splits == 1 ? 0 : (long) programs * rows * splits)
            .isLessThanOrEqualTo(Splits.partials(MULTIPROCESSORS, rows));
      }
    }
  }
}
