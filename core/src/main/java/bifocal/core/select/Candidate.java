package bifocal.core.select;

import bifocal.core.backend.BackendName;
import bifocal.core.backend.InvalidReason;
import io.vavr.Lazy;
import io.vavr.collection.Seq;
import io.vavr.control.Option;
import java.util.function.Supplier;

/**
 * One backend that was considered.
 *
 * @param priority its place in the platform's list, from 1; absent beside the list
 * @param reasons everything against it, empty when valid
 * @param advice the {@linkplain #hint() hint}, put into words when somebody reads it
 */
public record Candidate(
    BackendName backend,
    Option<Integer> priority,
    boolean valid,
    Seq<InvalidReason> reasons,
    Lazy<Option<String>> advice) {

  /** What would have to change, or what is worth knowing of a valid candidate. */
  public Option<String> hint() {
    return advice.get();
  }

  /** The same candidate with more advice. */
  Candidate advising(Supplier<String> more) {
    return new Candidate(
        backend,
        priority,
        valid,
        reasons,
        Lazy.of(() -> Option.some(hint().map(h -> h + "; ").getOrElse("") + more.get())));
  }

  /** The name and what speaks against it, or {@code ok}. */
  String inBrief() {
    return backend + (valid ? " ok" : ": " + reasons.map(InvalidReason::text).mkString(", "));
  }
}
