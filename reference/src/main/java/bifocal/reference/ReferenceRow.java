package bifocal.reference;

/**
 * Attention of one query token and head.
 *
 * @param at which
 * @param out {@code headSizeV} numbers; all 0 when no key is visible
 * @param lse natural log-sum-exp of the logits and the sink; negative infinity when there is none
 */
public record ReferenceRow(QueryHead at, double[] out, double lse) {
  /** Euclidean norm of the output. */
  public double norm() {
    double sum = 0;
    for (double number : out) {
      sum += number * number;
    }
    return Math.sqrt(sum);
  }
}
