package bifocal.cli.replay;

import java.util.SplittableRandom;

/**
 * Sixteen seeded projections of a group's outputs onto ±1: two runs computed the same when every
 * projection agrees within a tolerance times the norm of the outputs. Every element of every output
 * enters every projection; its sign is the product of a sign of its element, a sign of its row, and
 * an entry of a Hadamard matrix whose line depends on projection and row.
 */
final class Checksum {
  static final int PROJECTIONS = 16;

  private final float[] elementSigns;
  private final double[] projections = new double[PROJECTIONS];
  private final float[] classes = new float[PROJECTIONS];
  private double squares;

  Checksum(long seed, int headSize) {
    SplittableRandom random = new SplittableRandom(seed);
    elementSigns = new float[headSize];
    for (int d = 0; d < headSize; d++) {
      elementSigns[d] = random.nextBoolean() ? 1 : -1;
    }
  }

  /** Adds one head's output of one query token; {@code row} names the token and head for good. */
  void add(float[] output, int length, long row) {
    for (int c = 0; c < PROJECTIONS; c++) {
      classes[c] = 0;
    }
    double sum = 0;
    for (int d = 0; d < length; d++) {
      classes[d & (PROJECTIONS - 1)] += elementSigns[d] * output[d];
      sum += output[d] * output[d];
    }
    squares += sum;
    int hash = rowHash(row);
    int sign = (hash & PROJECTIONS) == 0 ? 1 : -1;
    for (int j = 0; j < PROJECTIONS; j++) {
      int pattern = (j ^ hash) & (PROJECTIONS - 1);
      double projection = 0;
      for (int c = 0; c < PROJECTIONS; c++) {
        projection += (Integer.bitCount(pattern & c) & 1) == 0 ? classes[c] : -classes[c];
      }
      projections[j] += sign * projection;
    }
  }

  double[] projections() {
    return projections.clone();
  }

  /** Euclidean norm of all outputs. */
  double norm() {
    return Math.sqrt(squares);
  }

  /** Largest difference of a projection, as a part of the other run's norm. */
  double distance(Checksum other) {
    double worst = 0;
    for (int j = 0; j < PROJECTIONS; j++) {
      worst = Math.max(worst, Math.abs(projections[j] - other.projections[j]));
    }
    return worst / Math.max(other.norm(), Double.MIN_NORMAL);
  }

  private static int rowHash(long row) {
    long y = (row ^ (row >>> 30)) * 0xbf58476d1ce4e5b9L;
    y = (y ^ (y >>> 27)) * 0x94d049bb133111ebL;
    return (int) (y >>> 32);
  }
}
