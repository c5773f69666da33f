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
   * Compares everybody with the first, in up to {@value #MOST_TOKENS} query tokens.
   *
   * @return the worst distance, over the larger of the vector's length and the mean length
   * @throws BifocalException {@code INTERNAL} past the bound, or for a number that is none
   */
  static double require(Work work, Seq<Contender> contenders) {
    double worst = 0;
    for (Contender other : contenders.tail()) {
      double error = distance(work, contenders.head(), other);
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

  private static double distance(Work work, Contender first, Contender other) {
    int step = Math.max(1, work.queryTokens() / MOST_TOKENS);
    float[] mine = new float[work.headSize()];
    float[] theirs = new float[work.headSize()];
    double sum = 0;
    long vectors = 0;
    for (int token = 0; token < work.queryTokens(); token += step) {
      for (int head = 0; head < Work.HEADS; head++) {
        first.read(token, head, mine);
        sum += square(mine, null);
        vectors++;
      }
    }
    double mean = Math.sqrt(sum / vectors);
    double worst = 0;
    for (int token = 0; token < work.queryTokens(); token += step) {
      for (int head = 0; head < Work.HEADS; head++) {
        first.read(token, head, mine);
        other.read(token, head, theirs);
        double error =
            Math.sqrt(square(mine, theirs)) / Math.max(Math.sqrt(square(mine, null)), mean);
        if (!(error <= worst)) {
          worst = error;
        }
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
