package bifocal.core.select;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.Lazy;
import io.vavr.collection.Seq;

/**
 * Why no backend was chosen.
 *
 * @param sentence the {@linkplain #message() message}, put together when somebody reads it
 * @param candidates every backend that was considered
 */
public record SelectionRefusal(ErrorCode code, Lazy<String> sentence, Seq<Candidate> candidates) {

  /** One sentence that names every reason. */
  public String message() {
    return sentence.get();
  }

  /** The refusal as a failure. */
  public BifocalException exception() {
    return BifocalException.of(code, message());
  }
}
