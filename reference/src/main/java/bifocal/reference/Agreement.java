package bifocal.reference;

import bifocal.core.backend.AttentionOutput;
import io.vavr.collection.Seq;
import io.vavr.control.Option;
import java.util.Locale;

/**
 * How an output agrees with the reference: the worst error of any query token and head, and where
 * it is. The error of an output vector {@code o} with reference {@code r} is {@code ‖o-r‖ /
 * max(‖r‖, rms)}, where {@code rms} is the root mean square of {@code ‖r‖} over all compared
 * vectors. The error of a log-sum-exp is {@code |l-r| / max(1, |r|)}. Both are infinite where a
 * number is missing (NaN).
 *
 * @param compared number of query tokens and heads compared
 * @param error worst error of an output vector
 * @param at where it is, absent when nothing differs
 * @param lseError worst error of a log-sum-exp; 0 when none was computed
 * @param lseAt where it is, absent when nothing differs
 */
public record Agreement(
    int compared, double error, Option<QueryHead> at, double lseError, Option<QueryHead> lseAt) {

  /** Compares what a backend wrote with reference rows. */
  public static Agreement of(Seq<ReferenceRow> rows, AttentionOutput output) {
    HostTensor out = HostTensor.over(output.out());
    Option<HostTensor> lse = output.lse().map(HostTensor::over);
    double floor = rootMeanSquare(rows);
    Worst worst = new Worst();
    Worst worstLse = new Worst();
    for (ReferenceRow row : rows) {
      worst.meet(row.at(), vectorError(row, out, floor));
      if (lse.isDefined()) {
        float seen = lse.get().at(row.at().queryToken(), row.at().head());
        worstLse.meet(row.at(), numberError(row.lse(), seen));
      }
    }
    return new Agreement(rows.size(), worst.error, worst.at, worstLse.error, worstLse.at);
  }

  /** Whether both errors are within bounds. */
  public boolean within(Tolerance tolerance) {
    return error <= tolerance.out() && lseError <= tolerance.lse();
  }

  /** The worse of two agreements of different outputs. */
  public Agreement worse(Agreement other) {
    boolean otherOut = other.error > error;
    boolean otherLse = other.lseError > lseError;
    return new Agreement(
        compared + other.compared,
        otherOut ? other.error : error,
        otherOut ? other.at : at,
        otherLse ? other.lseError : lseError,
        otherLse ? other.lseAt : lseAt);
  }

  private static double rootMeanSquare(Seq<ReferenceRow> rows) {
    double squares = 0;
    for (ReferenceRow row : rows) {
      double norm = row.norm();
      squares += norm * norm;
    }
    return rows.isEmpty() ? 0 : Math.sqrt(squares / rows.size());
  }

  private static double vectorError(ReferenceRow row, HostTensor out, double floor) {
    double squares = 0;
    for (int d = 0; d < row.out().length; d++) {
      double difference = out.at(row.at().queryToken(), row.at().head(), d) - row.out()[d];
      squares += difference * difference;
    }
    double distance = Math.sqrt(squares);
    if (Double.isNaN(distance)) {
      return Double.POSITIVE_INFINITY;
    }
    return distance == 0 ? 0 : distance / Math.max(row.norm(), floor);
  }

  private static double numberError(double wanted, double seen) {
    if (wanted == seen) {
      return 0;
    }
    double error = Math.abs(seen - wanted) / Math.max(1, Math.abs(wanted));
    return Double.isNaN(error) ? Double.POSITIVE_INFINITY : error;
  }

  private static final class Worst {
    private double error;
    private Option<QueryHead> at = Option.none();

    private void meet(QueryHead where, double seen) {
      if (seen > error) {
        error = seen;
        at = Option.some(where);
      }
    }
  }

  @Override
  public String toString() {
    return String.format(
        Locale.ROOT,
        "error %.2e%s, LSE error %.2e%s, %d vectors compared",
        error,
        place(at),
        lseError,
        place(lseAt),
        compared);
  }

  private static String place(Option<QueryHead> at) {
    return at.map(w -> " at query token " + w.queryToken() + ", head " + w.head()).getOrElse("");
  }
}
