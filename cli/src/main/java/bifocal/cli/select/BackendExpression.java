package bifocal.cli.select;

import bifocal.composite.CompositeBackends;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.BackendRegistry;
import bifocal.core.route.RoutingPolicy;

/**
 * Reads the name of a backend, or a pair {@code A+B} of such names, where a pair inside another
 * stands in parentheses.
 */
final class BackendExpression {
  private final BackendRegistry.Snapshot registry;
  private final RoutingPolicy policy;

  BackendExpression(BackendRegistry.Snapshot registry, RoutingPolicy policy) {
    this.registry = registry;
    this.policy = policy;
  }

  /**
   * The backend.
   *
   * @throws bifocal.core.error.BifocalException {@code UNKNOWN_BACKEND} with the nearest known
   *     name, or {@code INVALID_COMPOSITION} with every reason
   */
  AttentionBackend<?> backend(String text) {
    String bare = withoutParentheses(text.strip());
    int plus = plusBetween(bare);
    return plus < 0
        ? registry.require(bare)
        : pair(backend(bare.substring(0, plus)), backend(bare.substring(plus + 1)));
  }

  private <MA extends AttentionMetadata, MB extends AttentionMetadata> AttentionBackend<?> pair(
      AttentionBackend<MA> a, AttentionBackend<MB> b) {
    return CompositeBackends.createCompositeBackendOrThrow(a, b, policy);
  }

  /** Where the two operands meet; -1 for a single name. */
  private static int plusBetween(String text) {
    int depth = 0;
    for (int i = 0; i < text.length(); i++) {
      switch (text.charAt(i)) {
        case '(' -> depth++;
        case ')' -> depth--;
        case '+' -> {
          if (depth == 0) {
            return i;
          }
        }
        default -> {}
      }
    }
    return -1;
  }

  private static String withoutParentheses(String text) {
    boolean wrapped = text.startsWith("(") && text.endsWith(")") && plusBetween(text) < 0;
    return wrapped ? withoutParentheses(text.substring(1, text.length() - 1)) : text;
  }
}
