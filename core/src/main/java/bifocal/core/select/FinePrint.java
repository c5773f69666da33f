package bifocal.core.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ResolvedVariant;
import io.vavr.control.Option;

/** A rule about a combination of properties, which no table of single properties can say. */
@FunctionalInterface
public interface FinePrint {
  /** What speaks against a request that every table allows. */
  Option<InvalidReason> objection(AttentionRequest request, ResolvedVariant variant);
}
