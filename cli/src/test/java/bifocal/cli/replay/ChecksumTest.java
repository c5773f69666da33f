package bifocal.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

final class ChecksumTest {
  private static Checksum of(float[][] rows, int... order) {
    Checksum checksum = new Checksum(3, 32);
    for (int row : order) {
      checksum.add(rows[row], 32, row);
    }
    return checksum;
  }

  private static float[][] rows(int count) {
    SplittableRandom random = new SplittableRandom(11);
    float[][] rows = new float[count][32];
    for (float[] row : rows) {
      for (int d = 0; d < row.length; d++) {
        row[d] = (float) random.nextDouble(-1, 1);
      }
    }
    return rows;
  }

  @Test
  void doesNotDependOnTheOrderOfRows() {
    float[][] rows = rows(3);

    assertThat(of(rows, 0, 1, 2).distance(of(rows, 2, 0, 1))).isCloseTo(0, within(1e-12));
  }

  @Test
  void everyElementMovesEveryProjectionByItsOwnChange() {
    float[][] rows = rows(1);
    Checksum before = of(rows, 0);
    for (int d = 0; d < 32; d++) {
      float kept = rows[0][d];
      rows[0][d] += 0.5f;
      double[] moved = of(rows, 0).projections();
      for (int j = 0; j < Checksum.PROJECTIONS; j++) {
        assertThat(Math.abs(moved[j] - before.projections()[j])).isCloseTo(0.5, within(1e-5));
      }
      rows[0][d] = kept;
    }
  }

  @Test
  void swappedRowsAreSeen() {
    float[][] rows = rows(8);
    Checksum right = of(rows, 0, 1, 2, 3, 4, 5, 6, 7);
    float[] kept = rows[2];
    rows[2] = rows[5];
    rows[5] = kept;

    assertThat(of(rows, 0, 1, 2, 3, 4, 5, 6, 7).distance(right)).isGreaterThan(0.02);
  }

  @Test
  void theNormIsEuclidean() {
    float[] row = new float[32];
    row[0] = 3;
    row[1] = 4;
    Checksum checksum = new Checksum(3, 32);
    checksum.add(row, 32, 0);

    assertThat(checksum.norm()).isEqualTo(5);
  }
}
