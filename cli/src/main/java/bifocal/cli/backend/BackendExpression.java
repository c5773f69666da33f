package bifocal.cli.backend;

import bifocal.composite.CompositeBackends;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.route.RoutingPolicy;
import java.util.function.Function;

/**
 * How a user writes a backend: the name of one, or a pair {@code A+B} of such expressions. A pair
 * inside another stands in parentheses, as in {@code (A+B)+C}.
 */
public sealed interface BackendExpression {
  /** The name of one backend. */
  record Named(String name) implements BackendExpression {
    @Override
    public String toString() {
      return name;
    }
  }

  /** A general backend, which writes the cache, and a fast one. */
  record Pair(BackendExpression general, BackendExpression fast) implements BackendExpression {
    @Override
    public String toString() {
      return operand(general) + "+" + operand(fast);
    }

    private static String operand(BackendExpression expression) {
      return switch (expression) {
        case Named named -> named.toString();
        case Pair pair -> "(" + pair + ")";
      };
    }
  }

  /**
   * Reads an expression.
   *
   * @throws bifocal.core.error.BifocalException {@code INVALID_OPTION} that says what is missing
   *     and where
   */
  static BackendExpression of(String text) {
    return new BackendExpressionReader(text).read();
  }

  /**
   * The backend.
   *
   * @param lookUp finds the backend of a name, or throws
   * @param policy routes in every pair
   * @throws bifocal.core.error.BifocalException {@code INVALID_COMPOSITION} with every reason
   */
  default AttentionBackend<?> backend(
      Function<String, AttentionBackend<?>> lookUp, RoutingPolicy policy) {
    return switch (this) {
      case Named named -> lookUp.apply(named.name());
      case Pair pair ->
          composed(
              pair.general().backend(lookUp, policy), pair.fast().backend(lookUp, policy), policy);
    };
  }

  private static <MA extends AttentionMetadata, MB extends AttentionMetadata>
      AttentionBackend<?> composed(
          AttentionBackend<MA> general, AttentionBackend<MB> fast, RoutingPolicy policy) {
    return CompositeBackends.createCompositeBackendOrThrow(general, fast, policy);
  }
}
