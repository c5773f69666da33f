package bifocal.cuda.triton;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** How many programs share the keys of a decode tile. */
class SplitsTest {
  private static final int MULTIPROCESSORS = 132;
  private static final long ROOM = 1_000;

  @Test
  void enoughTilesAreNotDivided() {
    assertThat(Splits.of(512, MULTIPROCESSORS, 1 << 20, ROOM)).isEqualTo(1);
    assertThat(Splits.of(128, MULTIPROCESSORS, 1 << 20, ROOM)).isEqualTo(1);
  }

  @Test
  void fewTilesAreDividedUntilTheDeviceIsFull() {
    assertThat(Splits.of(8, MULTIPROCESSORS, 32_768, ROOM)).isEqualTo(49);
    assertThat(Splits.of(64, MULTIPROCESSORS, 32_768, ROOM)).isEqualTo(6);
    assertThat(Splits.of(1, MULTIPROCESSORS, 1 << 20, ROOM)).isEqualTo(Splits.MOST);
  }

  @Test
  void shortRowsAreNotWorthManyPrograms() {
    assertThat(Splits.of(8, MULTIPROCESSORS, 512, ROOM)).isEqualTo(2);
    assertThat(Splits.of(8, MULTIPROCESSORS, 0, ROOM)).isEqualTo(1);
  }

  @Test
  void workspaceLimitsTheSplits() {
    assertThat(Splits.of(8, MULTIPROCESSORS, 32_768, 5)).isEqualTo(5);
    assertThat(Splits.of(8, MULTIPROCESSORS, 32_768, 0)).isEqualTo(1);
  }

  @Test
  void compactBatchesAlwaysHaveRoom() {
    int rows = 16;
    for (int programs = 1; programs < MULTIPROCESSORS; programs++) {
      int splits = Splits.of(programs, MULTIPROCESSORS, Integer.MAX_VALUE, Integer.MAX_VALUE);
      assertThat((long) programs * rows * splits)
          .isLessThanOrEqualTo(Splits.partials(MULTIPROCESSORS, rows));
    }
  }
}
