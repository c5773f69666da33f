package bifocal.cuda.pack;

import com.fasterxml.jackson.databind.JsonNode;
import io.vavr.collection.HashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.function.Function;

/** The fields of one object of a manifest. What is wrong with one is thrown as a refusal. */
final class ManifestFields {
  private final String at;
  private final JsonNode node;

  private ManifestFields(String at, JsonNode node) {
    this.at = at;
    this.node = node;
  }

  /** Opens an object that may have these fields and no others. */
  static ManifestFields of(String at, JsonNode node, String... known) {
    if (!node.isObject()) {
      throw malformed(at, node.getNodeType().toString(), "an object");
    }
    Set<String> names = HashSet.of(known);
    for (java.util.Map.Entry<String, JsonNode> field : node.properties()) {
      if (!names.contains(field.getKey())) {
        throw new Refused(
            new PackRefusal(
                PackRefusal.Code.UNKNOWN_FIELD,
                at,
                "field " + field.getKey(),
                "fields that this version knows",
                "build the pack with the scripts of this version"));
      }
    }
    return new ManifestFields(at, node);
  }

  String at() {
    return at;
  }

  String text(String name) {
    JsonNode value = field(name);
    if (!value.isTextual() || value.textValue().isEmpty()) {
      throw malformed(at + "." + name, value.toString(), "text");
    }
    return value.textValue();
  }

  int number(String name, int least) {
    JsonNode value = field(name);
    if (!value.isIntegralNumber() || !value.canConvertToInt() || value.intValue() < least) {
      throw malformed(at + "." + name, value.toString(), "a number of at least " + least);
    }
    return value.intValue();
  }

  int numberOr(String name, int least, int absent) {
    return node.has(name) ? number(name, least) : absent;
  }

  boolean flag(String name) {
    JsonNode value = field(name);
    if (!value.isBoolean()) {
      throw malformed(at + "." + name, value.toString(), "true or false");
    }
    return value.booleanValue();
  }

  boolean flagOr(String name, boolean absent) {
    return node.has(name) ? flag(name) : absent;
  }

  /** One of some values, by its label. */
  <T> T oneOf(String name, Seq<T> values, Function<T, String> label) {
    String text = text(name);
    return values
        .find(value -> label.apply(value).equals(text))
        .getOrElseThrow(() -> malformed(at + "." + name, text, values.map(label).mkString(" or ")));
  }

  <T> T parsed(String name, Function<String, Option<T>> parse, String wanted) {
    String text = text(name);
    return parse.apply(text).getOrElseThrow(() -> malformed(at + "." + name, text, wanted));
  }

  JsonNode object(String name) {
    return field(name);
  }

  boolean has(String name) {
    return node.has(name);
  }

  Seq<JsonNode> list(String name) {
    JsonNode value = field(name);
    if (!value.isArray()) {
      throw malformed(at + "." + name, value.getNodeType().toString(), "a list");
    }
    return Vector.ofAll(value);
  }

  private JsonNode field(String name) {
    JsonNode value = node.path(name);
    if (value.isMissingNode() || value.isNull()) {
      throw malformed(at, "no field " + name, "one");
    }
    return value;
  }

  static Refused malformed(String what, String seen, String wanted) {
    return new Refused(
        new PackRefusal(PackRefusal.Code.MALFORMED, what, seen, wanted, "build the pack again"));
  }

  /** Carries a refusal out of the reader. */
  static final class Refused extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient PackRefusal refusal;

    Refused(PackRefusal refusal) {
      super(refusal.line());
      this.refusal = refusal;
    }

    PackRefusal refusal() {
      return refusal;
    }
  }
}
