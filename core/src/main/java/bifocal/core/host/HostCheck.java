package bifocal.core.host;

import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * What a platform finds on this host: processor or device, libraries, packs. It looks when it is
 * asked, and whatever it meets is a finding, never an exception.
 */
@FunctionalInterface
public interface HostCheck {
  /** Everything that was looked at, each with a remedy where there is one. */
  Seq<Finding> findings();

  /** The part that results depend on: what computes, and on how many threads. */
  default Seq<Finding> conditions() {
    return Vector.empty();
  }
}
