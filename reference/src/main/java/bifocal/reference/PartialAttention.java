package bifocal.reference;

/**
 * Attention over some of a query's keys, ready to be merged with attention over the others.
 *
 * @param keys number of keys that were visible; 0 makes {@code out} and {@code lse} meaningless
 * @param out softmax-weighted mean of the visible values
 * @param lse natural log-sum-exp of the visible logits
 */
public record PartialAttention(long keys, double[] out, double lse) {

  /**
   * Attention over the keys of both. A part is empty because it had no key, whatever a kernel left
   * in its output and log-sum-exp; both empty gives 0 and negative infinity.
   */
  public PartialAttention merge(PartialAttention other) {
    if (keys == 0 && other.keys == 0) {
      return new PartialAttention(0, new double[out.length], Double.NEGATIVE_INFINITY);
    }
    if (keys == 0) {
      return other;
    }
    if (other.keys == 0) {
      return this;
    }
    double largest = Math.max(lse, other.lse);
    if (largest == Double.NEGATIVE_INFINITY) {
      return new PartialAttention(keys + other.keys, new double[out.length], largest);
    }
    double mine = Math.exp(lse - largest);
    double theirs = Math.exp(other.lse - largest);
    double[] merged = new double[out.length];
    for (int d = 0; d < merged.length; d++) {
      merged[d] = weighted(mine, out[d], theirs, other.out[d]) / (mine + theirs);
    }
    return new PartialAttention(keys + other.keys, merged, largest + Math.log(mine + theirs));
  }

  /** A part without weight adds nothing, not even a NaN. */
  private static double weighted(double a, double x, double b, double y) {
    return (a == 0 ? 0 : a * x) + (b == 0 ? 0 : b * y);
  }
}
