package bifocal.cuda.pack;

import bifocal.core.error.FileFailure;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import io.vavr.collection.HashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.util.function.Function;

/**
 * The fields of one object of a manifest. What is wrong with one is thrown as a {@link Refused},
 * which {@link #read} returns as the refusal that it is.
 */
public final class ManifestFields {
  private static final ObjectMapper MAPPER =
      JsonMapper.builder()
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
          .build();

  private final String at;
  private final JsonNode node;

  private ManifestFields(String at, JsonNode node) {
    this.at = at;
    this.node = node;
  }

  /**
   * Reads a manifest.
   *
   * @param at what messages call it
   * @param reader makes the result of the root, or throws {@link Refused}
   */
  public static <T> Validation<PackRefusal, T> read(
      String at, String json, Function<JsonNode, T> reader) {
    try {
      return Validation.valid(reader.apply(MAPPER.readTree(json)));
    } catch (Refused e) {
      return Validation.invalid(e.refusal());
    } catch (JsonProcessingException e) {
      return Validation.invalid(malformed(at, FileFailure.reason(e), "JSON").refusal());
    }
  }

  /** Opens an object whose other fields mean nothing to a loader. */
  public static ManifestFields of(String at, JsonNode node) {
    if (!node.isObject()) {
      throw malformed(at, node.getNodeType().toString(), "an object");
    }
    return new ManifestFields(at, node);
  }

  /** Opens an object that may have these fields and no others. */
  static ManifestFields only(String at, JsonNode node, String... known) {
    ManifestFields fields = of(at, node);
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
    return fields;
  }

  /** What messages call the object. */
  public String at() {
    return at;
  }

  /** A text that says something. */
  public String text(String name) {
    JsonNode value = field(name);
    if (!value.isTextual() || value.textValue().isEmpty()) {
      throw malformed(at + "." + name, value.toString(), "text");
    }
    return value.textValue();
  }

  /** The name of a file in the manifest's directory. */
  public String file(String name) {
    return parsed(
        name,
        text -> Option.when(text.matches("[A-Za-z0-9._-]+") && !text.startsWith("."), text),
        "the name of a file in the pack's directory");
  }

  /** A whole number. */
  public int number(String name, int least) {
    JsonNode value = field(name);
    if (!value.isIntegralNumber() || !value.canConvertToInt() || value.intValue() < least) {
      throw malformed(at + "." + name, value.toString(), "a number of at least " + least);
    }
    return value.intValue();
  }

  int numberOr(String name, int least, int absent) {
    return node.has(name) ? number(name, least) : absent;
  }

  /** Whether. */
  public boolean flag(String name) {
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
  public <T> T oneOf(String name, Seq<T> values, Function<T, String> label) {
    String text = text(name);
    return values
        .find(value -> label.apply(value).equals(text))
        .getOrElseThrow(() -> malformed(at + "." + name, text, values.map(label).mkString(" or ")));
  }

  <T> T parsed(String name, Function<String, Option<T>> parse, String wanted) {
    String text = text(name);
    return parse.apply(text).getOrElseThrow(() -> malformed(at + "." + name, text, wanted));
  }

  /** An object inside. */
  public JsonNode object(String name) {
    return field(name);
  }

  /** Whether there is such a field. */
  public boolean has(String name) {
    return node.has(name);
  }

  /** The members of a list. */
  public Seq<JsonNode> list(String name) {
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

  /** The refusal of a manifest that says something that cannot be. */
  public static Refused malformed(String what, String seen, String wanted) {
    return new Refused(
        new PackRefusal(PackRefusal.Code.MALFORMED, what, seen, wanted, "build the pack again"));
  }

  /** Carries a refusal out of the reader. */
  public static final class Refused extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient PackRefusal refusal;

    /** Carries one. */
    public Refused(PackRefusal refusal) {
      super(refusal.line());
      this.refusal = refusal;
    }

    PackRefusal refusal() {
      return refusal;
    }
  }
}
