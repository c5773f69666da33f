package bifocal.benchmarks.cpu;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;

/** Whether contenders computed the same, by the distance of their output vectors. */
final class Agreement {
  private static final double BOUND_FP32 = 1e-4;
  private static final double BOUND_BF16 = 2.4e-2;
  private static final int MOST_TOKENS = 512;

  private Agreement() {}

  /**
   * Runs everybody and compares with the first, in up to {@value #MOST_TOKENS} query tokens. Each
   * is read before the next one runs, so outputs may share memory.
   *
   * @return the worst distance, over the larger of the vector's length and the mean length
   * @throws BifocalException {@code INTERNAL} past the bound, or for a number that is none
   */
  static double require(Work work, Seq<Contender> contenders) {
    float[][] first = vectors(work, contenders.head());
    double worst = 0;
    for (Contender other : contenders.tail()) {
      double error = distance(first, vectors(work, other));
      if (!(error <= bound(work.dtype()))) {
        throw BifocalException.of(
            ErrorCode.INTERNAL,
            work.name() + ": " + other.name() + " against " + contenders.head().name(),
            error,
            "at most " + bound(work.dtype()));
      }
      worst = Math.max(worst, error);
    }
    return worst;
  }

  private static double bound(DType type) {
    return type == DType.FP32 ? BOUND_FP32 : BOUND_BF16;
  }

  /** What a contender's run leaves, token by token and head by head. */
  private static float[][] vectors(Work work, Contender contender) {
    contender.run();
    int step = Math.max(1, work.queryTokens() / MOST_TOKENS);
    float[][] vectors =
        new float[Math.ceilDiv(work.queryTokens(), step) * Work.HEADS][work.headSize()];
    for (int i = 0; i < vectors.length; i++) {
      contender.read(i / Work.HEADS * step, i % Work.HEADS, vectors[i]);
    }
    return vectors;
  }

  private static double distance(float[][] mine, float[][] theirs) {
    double sum = 0;
    for (float[] vector : mine) {
      sum += square(vector, null);
    }
    double mean = Math.sqrt(sum / mine.length);
    double worst = 0;
    for (int i = 0; i < mine.length; i++) {
      double error =
          Math.sqrt(square(mine[i], theirs[i])) / Math.max(Math.sqrt(square(mine[i], null)), mean);
      if (!(error <= worst)) {
        worst = error;
      }
    }
    return worst;
  }

  private static double square(float[] a, float @org.jspecify.annotations.Nullable [] b) {
    double sum = 0;
    for (int i = 0; i < a.length; i++) {
      double difference = a[i] - (b == null ? 0 : b[i]);
      sum += difference * difference;
    }
    return sum;
  }
}
