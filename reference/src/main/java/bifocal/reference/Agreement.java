package bifocal.reference;

import bifocal.core.backend.AttentionOutput;
import bifocal.core.batch.CommonAttentionMetadata;
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

  /**
   * Compares what one backend wrote with what another did, the other standing in for the reference.
   * Only rows of live requests are looked at; log-sum-exps are compared where both wrote them.
   */
  public static Agreement between(
      CommonAttentionMetadata batch, AttentionOutput wanted, AttentionOutput seen) {
    HostTensor from = HostTensor.over(wanted.out());
    HostTensor out = HostTensor.over(seen.out());
    int heads = Math.toIntExact(wanted.out().size(1));
    int headSize = Math.toIntExact(wanted.out().size(2));
    double floor = Math.sqrt(meanSquare(batch, from, heads, headSize));
    Worst worst = new Worst();
    Worst worstLse = new Worst();
    int compared = 0;
    for (int request = 0; request < batch.live(); request++) {
      for (int i = 0; i < batch.queryLen(request); i++) {
        int row = batch.queryStart(request) + i;
        for (int head = 0; head < heads; head++) {
          compared++;
          worst.meet(row, head, vectorError(from, out, row, head, headSize, floor));
          if (wanted.lse().isDefined() && seen.lse().isDefined()) {
            float lse = HostTensor.over(wanted.lse().get()).at(row, head);
            worstLse.meet(
                row, head, numberError(lse, HostTensor.over(seen.lse().get()).at(row, head)));
          }
        }
      }
    }
    return new Agreement(compared, worst.error, worst.at, worstLse.error, worstLse.at);
  }

  private static double meanSquare(
      CommonAttentionMetadata batch, HostTensor from, int heads, int headSize) {
    double squares = 0;
    long vectors = 0;
    for (int request = 0; request < batch.live(); request++) {
      for (int i = 0; i < batch.queryLen(request); i++) {
        for (int head = 0; head < heads; head++) {
          double norm = norm(from, batch.queryStart(request) + i, head, headSize);
          squares += norm * norm;
          vectors++;
        }
      }
    }
    return vectors == 0 ? 0 : squares / vectors;
  }

  private static double norm(HostTensor tensor, int row, int head, int headSize) {
    double squares = 0;
    for (int d = 0; d < headSize; d++) {
      double number = tensor.at(row, head, d);
      squares += number * number;
    }
    return Math.sqrt(squares);
  }

  private static double vectorError(
      HostTensor wanted, HostTensor seen, int row, int head, int headSize, double floor) {
    double squares = 0;
    for (int d = 0; d < headSize; d++) {
      double difference = seen.at(row, head, d) - wanted.at(row, head, d);
      squares += difference * difference;
    }
    return relative(Math.sqrt(squares), norm(wanted, row, head, headSize), floor);
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
    return relative(Math.sqrt(squares), row.norm(), floor);
  }

  private static double relative(double distance, double norm, double floor) {
    if (distance == 0) {
      return 0;
    }
    double error = distance / Math.max(norm, floor);
    return Double.isNaN(error) ? Double.POSITIVE_INFINITY : error;
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

    private void meet(int queryToken, int head, double seen) {
      if (seen > error) {
        error = seen;
        at = Option.some(new QueryHead(queryToken, head));
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
