package bifocal.core.select;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;

/**
 * Why no backend was chosen.
 *
 * @param message one sentence that names every reason
 * @param candidates every backend that was considered
 */
public record SelectionRefusal(ErrorCode code, String message, Seq<Candidate> candidates) {
  /** The refusal as a failure. */
  public BifocalException exception() {
    return BifocalException.of(code, message);
  }
}
