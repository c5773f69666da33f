package bifocal.cli.backend;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;

/** Reads one expression from left to right. */
final class BackendExpressionReader {
  /** Pairs inside pairs; more is a slip of the finger. */
  private static final int DEEPEST = 16;

  private final String text;
  private int at;
  private int depth;

  BackendExpressionReader(String text) {
    this.text = text;
  }

  BackendExpression read() {
    BackendExpression expression = expression();
    if (at < text.length()) {
      throw malformed(
          text.charAt(at) == '+'
              ? "a pair of two, with parentheses that say which belong together, as in (A+B)+C"
              : "the end or one '+'");
    }
    return expression;
  }

  private BackendExpression expression() {
    BackendExpression first = operand();
    if (at == text.length() || text.charAt(at) != '+') {
      return first;
    }
    at++;
    return new BackendExpression.Pair(first, operand());
  }

  private BackendExpression operand() {
    skipBlanks();
    BackendExpression operand = at < text.length() && text.charAt(at) == '(' ? inner() : name();
    skipBlanks();
    return operand;
  }

  private BackendExpression inner() {
    at++;
    depth++;
    if (depth > DEEPEST) {
      throw malformed("at most " + DEEPEST + " pairs inside one another");
    }
    BackendExpression inner = expression();
    if (at == text.length() || text.charAt(at) != ')') {
      throw malformed("')'");
    }
    at++;
    depth--;
    return inner;
  }

  private BackendExpression name() {
    int start = at;
    while (at < text.length() && "+()".indexOf(text.charAt(at)) < 0) {
      at++;
    }
    String name = text.substring(start, at).strip();
    if (name.isEmpty()) {
      throw malformed("the name of a backend, or a pair in parentheses");
    }
    return new BackendExpression.Named(name);
  }

  private void skipBlanks() {
    while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
      at++;
    }
  }

  private BifocalException malformed(String wanted) {
    String seen = at < text.length() ? "'" + text.charAt(at) + "'" : "the end";
    return BifocalException.of(
        ErrorCode.INVALID_OPTION, "backend '" + text + "', character " + (at + 1), seen, wanted);
  }
}
