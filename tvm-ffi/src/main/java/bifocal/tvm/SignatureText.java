package bifocal.tvm;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/** Reads a signature from left to right. */
final class SignatureText {
  private static final String BETWEEN_NAMES = "<>,()";

  private final String text;
  private int position;

  SignatureText(String text) {
    this.text = text;
  }

  Signature signature() {
    require("(");
    Seq<TypeSchema> parameters = take(")") ? Vector.empty() : types(")");
    require("->");
    TypeSchema result = type();
    if (position != text.length()) {
      throw malformed("the end");
    }
    return new Signature(parameters, result);
  }

  /** Types with commas between them, and what closes their list. */
  private Seq<TypeSchema> types(String close) {
    Seq<TypeSchema> types = Vector.of(type());
    while (take(",")) {
      types = types.append(type());
    }
    require(close);
    return types;
  }

  private TypeSchema type() {
    String name = name();
    return new TypeSchema(name, take("<") ? types(">") : Vector.empty());
  }

  private String name() {
    skipBlanks();
    int start = position;
    while (position < text.length() && BETWEEN_NAMES.indexOf(text.charAt(position)) < 0) {
      position++;
    }
    String name = text.substring(start, position).strip();
    if (name.isEmpty()) {
      throw malformed("a type");
    }
    return name;
  }

  private boolean take(String token) {
    skipBlanks();
    boolean there = text.startsWith(token, position);
    if (there) {
      position += token.length();
    }
    return there;
  }

  private void require(String token) {
    if (!take(token)) {
      throw malformed(token);
    }
  }

  private void skipBlanks() {
    while (position < text.length() && text.charAt(position) == ' ') {
      position++;
    }
  }

  private BifocalException malformed(String wanted) {
    return BifocalException.of(
        ErrorCode.MALFORMED_INPUT,
        "signature '" + text + "'",
        "'" + text.substring(position) + "' at " + position,
        wanted);
  }
}
