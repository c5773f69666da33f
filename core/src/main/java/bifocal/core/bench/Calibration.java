package bifocal.core.bench;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.control.Validation;

/**
 * Times of backends as children of composites, by phase and by the shape of requests, and where
 * they were measured.
 */
public record Calibration(Provenance provenance, Seq<ChildTime> times) {

  /**
   * The same table, if it was measured where it shall be used.
   *
   * @param here what a table that was measured now would say
   * @return the table, or everything that makes it stale or foreign
   */
  public Validation<Seq<String>, Calibration> validHere(Provenance here) {
    Seq<String> objections = provenance.objections(here);
    return objections.isEmpty() ? Validation.valid(this) : Validation.invalid(objections);
  }

  /**
   * The same table, for those who cannot go on without.
   *
   * @throws BifocalException {@code INVALID_OPTION} with everything that makes it stale or foreign
   */
  public Calibration requireValidHere(Provenance here) {
    Validation<Seq<String>, Calibration> valid = validHere(here);
    if (valid.isInvalid()) {
      throw BifocalException.of(
              ErrorCode.INVALID_OPTION,
              "calibration of "
                  + provenance.time()
                  + " is not used: "
                  + valid.getError().mkString("; "))
          .withRemedy("measure again with " + provenance.command());
    }
    return this;
  }
}
