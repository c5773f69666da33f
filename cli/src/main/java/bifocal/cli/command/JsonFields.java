package bifocal.cli.command;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.FileFailure;
import bifocal.core.error.NearestName;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.vavr.collection.Array;
import io.vavr.collection.Seq;
import io.vavr.control.Option;
import java.io.IOException;
import java.io.InputStream;

/**
 * One object of a JSON input, read strictly: an unknown key, a value of another type, a number that
 * does not fit and a missing key each end the command with a message that says where. A key with
 * the value null counts as left out.
 */
public final class JsonFields {
  private static final int MOST_BYTES = 64 << 20;
  private static final int MOST_QUOTED = 60;
  private static final JsonMapper MAPPER =
      JsonMapper.builder()
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .enable(DeserializationFeature.FAIL_ON_READING_DUP_TREE_KEY)
          .build();

  private final String path;
  private final JsonNode object;
  private final Option<Integer> request;

  private JsonFields(String path, JsonNode object, Option<Integer> request) {
    this.path = path;
    this.object = object;
    this.request = request;
  }

  /**
   * Reads one JSON object.
   *
   * @param name how messages call the object
   * @param source where the text comes from, for messages about the text as a whole
   * @throws IOException when the text cannot be read
   */
  public static JsonFields read(String name, String source, InputStream in) throws IOException {
    byte[] bytes = in.readNBytes(MOST_BYTES + 1);
    if (bytes.length > MOST_BYTES) {
      throw unfit(source, "more than " + MOST_BYTES + " bytes", "at most that many");
    }
    String where = source + ", " + bytes.length + " bytes";
    try {
      JsonNode root = MAPPER.readTree(bytes);
      if (root.isMissingNode()) {
        throw unfit(where, "nothing in it", "a JSON object");
      }
      return of(name, root, Option.none());
    } catch (JsonProcessingException e) {
      throw unfit(where, FileFailure.reason(e), "a JSON object").causedBy(e);
    }
  }

  private static CliFailure unfit(String where, String seen, String wanted) {
    return CliFailure.of(BifocalException.of(ErrorCode.MALFORMED_INPUT, where, seen, wanted));
  }

  private static JsonFields of(String path, JsonNode node, Option<Integer> request) {
    JsonFields fields = new JsonFields(path, node, request);
    if (!(node instanceof ObjectNode)) {
      throw fields.failure(ErrorCode.MALFORMED_INPUT, path, described(node) + ", wanted an object");
    }
    return fields;
  }

  /** These fields, whose failures name a request of the batch. */
  public JsonFields inRequest(int index) {
    return new JsonFields(path, object, Option.some(index));
  }

  /** Refuses every key but these. */
  public JsonFields allow(String... keys) {
    Seq<String> known = Array.of(keys);
    object
        .fieldNames()
        .forEachRemaining(
            key -> {
              if (!known.contains(key)) {
                throw failure(
                    ErrorCode.INVALID_OPTION,
                    path,
                    "unknown key " + quoted(key) + "; " + NearestName.adviceElseAll(key, known));
              }
            });
    return this;
  }

  /** Whether a key is there with a value. */
  public boolean has(String key) {
    return object.hasNonNull(key);
  }

  /** An object; one without keys when left out. */
  public JsonFields object(String key) {
    return of(at(key), has(key) ? object.get(key) : MAPPER.createObjectNode(), request);
  }

  /** A truth value. */
  public boolean flag(String key, boolean unlessGiven) {
    if (!has(key)) {
      return unlessGiven;
    }
    JsonNode node = object.get(key);
    if (!node.isBoolean()) {
      throw wrongType(at(key), node, "true or false");
    }
    return node.booleanValue();
  }

  /** One of some names. */
  public String name(String key, String unlessGiven, Seq<String> known) {
    if (!has(key)) {
      return unlessGiven;
    }
    JsonNode node = object.get(key);
    if (!node.isTextual()) {
      throw wrongType(at(key), node, "one of " + known.mkString(", "));
    }
    String name = node.textValue();
    if (!known.contains(name)) {
      throw failure(
          ErrorCode.INVALID_OPTION,
          at(key),
          "unknown " + quoted(name) + "; " + NearestName.adviceElseAll(name, known));
    }
    return name;
  }

  /** A whole number from 0 on that must be given. */
  public int count(String key) {
    return count(at(key), required(key));
  }

  /** A whole number from 0 on. */
  public Option<Integer> optionalCount(String key) {
    return has(key) ? Option.some(count(at(key), object.get(key))) : Option.none();
  }

  private int count(String where, JsonNode node) {
    requireInteger(where, node);
    if (node.bigIntegerValue().signum() < 0) {
      throw failure(ErrorCode.NEGATIVE, where, shown(node) + ", wanted at least 0");
    }
    if (!node.canConvertToInt()) {
      throw failure(
          ErrorCode.OVERFLOW, where, shown(node) + ", wanted at most " + Integer.MAX_VALUE);
    }
    return node.intValue();
  }

  /** The elements of an array that must be given. */
  public Seq<JsonNode> elements(String key) {
    return elements(at(key), required(key));
  }

  /** The object at a place of an array that must be given. */
  public JsonFields element(String key, int index) {
    return of(at(key) + "[" + index + "]", required(key).get(index), request);
  }

  /**
   * Pairs of whole numbers from 0 on, one after the other; none when left out.
   *
   * @param judged whether the numbers matter; otherwise only their shape is looked at, and 0 stands
   *     for each
   */
  public int[] pairs(String key, boolean judged) {
    if (!has(key)) {
      return new int[0];
    }
    Seq<JsonNode> pairs = elements(at(key), object.get(key));
    int[] numbers = new int[2 * pairs.size()];
    for (int i = 0; i < pairs.size(); i++) {
      String where = at(key) + "[" + i + "]";
      Seq<JsonNode> pair = elements(where, pairs.get(i));
      if (pair.size() != 2) {
        throw failure(ErrorCode.MALFORMED_INPUT, where, pair.size() + " numbers, wanted 2");
      }
      for (int side = 0; side < 2; side++) {
        requireInteger(where, pair.get(side));
        numbers[2 * i + side] = judged ? count(where, pair.get(side)) : 0;
      }
    }
    return numbers;
  }

  private Seq<JsonNode> elements(String where, JsonNode node) {
    if (!node.isArray()) {
      throw wrongType(where, node, "an array");
    }
    return Array.ofAll(node);
  }

  private JsonNode required(String key) {
    if (!has(key)) {
      throw failure(ErrorCode.MALFORMED_INPUT, at(key), "missing");
    }
    return object.get(key);
  }

  private void requireInteger(String where, JsonNode node) {
    if (!node.isIntegralNumber()) {
      throw wrongType(where, node, "a whole number");
    }
  }

  private String at(String key) {
    return path + "." + key;
  }

  private CliFailure wrongType(String where, JsonNode node, String wanted) {
    return failure(ErrorCode.MALFORMED_INPUT, where, described(node) + ", wanted " + wanted);
  }

  private CliFailure failure(ErrorCode code, String where, String what) {
    CliFailure failure = CliFailure.of(code, where + ": " + what);
    return request.isDefined() ? failure.inRequest(request.get()) : failure;
  }

  private static String described(JsonNode node) {
    return switch (node.getNodeType()) {
      case ARRAY -> "an array";
      case OBJECT, POJO -> "an object";
      case BOOLEAN, NUMBER -> shown(node);
      case STRING, BINARY -> "the text " + quoted(node.asText());
      case NULL -> "null";
      case MISSING -> "nothing";
    };
  }

  private static String shown(JsonNode number) {
    return abridged(number.asText());
  }

  private static String quoted(String text) {
    return "'" + abridged(text) + "'";
  }

  private static String abridged(String text) {
    return text.length() <= MOST_QUOTED ? text : text.substring(0, MOST_QUOTED) + "...";
  }
}
