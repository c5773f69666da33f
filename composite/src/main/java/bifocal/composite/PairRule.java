package bifocal.composite;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.InvalidReason;
import io.vavr.control.Option;

/** A rule of one composite about its fast child, which by itself would serve the request. */
@FunctionalInterface
public interface PairRule {
  /**
   * What speaks against the pair; reasons are reported under the child's name.
   *
   * @param childB the fast child
   * @param asked what the fast child is asked
   */
  Option<InvalidReason> objection(AttentionBackend<?> childB, AttentionRequest asked);
}
