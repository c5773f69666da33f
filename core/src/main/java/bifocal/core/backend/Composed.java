package bifocal.core.backend;

import bifocal.core.route.Child;
import bifocal.core.route.RoutingPolicy;

/** A backend made of two others and a policy that routes between them. */
public interface Composed {
  /** The general child, which writes the cache. */
  AttentionBackend<?> childA();

  /** The fast child. */
  AttentionBackend<?> childB();

  /** One of the children. */
  default AttentionBackend<?> child(Child child) {
    return switch (child) {
      case A -> childA();
      case B -> childB();
    };
  }

  /** What decides between the children. */
  RoutingPolicy policy();

  /** What a child is asked when the composite is asked this. */
  AttentionRequest asked(Child child, AttentionRequest request);
}
