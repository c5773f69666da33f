package bifocal.core.select;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.FileFailure;
import bifocal.core.error.NearestName;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.control.Option;

/**
 * Reads an attention configuration in all its forms: the option that names a backend, single keys,
 * and JSON. A key said twice with two values is refused, and so is an unknown one, with the nearest
 * known name.
 */
public final class AttentionConfigReader {
  private static final ObjectMapper MAPPER =
      JsonMapper.builder()
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
          .build();

  private final Option<String> attentionBackend;
  private final Map<String, JsonNode> said;

  private AttentionConfigReader(Option<String> attentionBackend, Map<String, JsonNode> said) {
    this.attentionBackend = attentionBackend;
    this.said = said;
  }

  /** Nothing read so far. */
  public static AttentionConfigReader start() {
    return new AttentionConfigReader(Option.none(), LinkedHashMap.empty());
  }

  /** Reads {@code --attention-backend NAME}. */
  public AttentionConfigReader attentionBackend(String name) {
    if (attentionBackend.isDefined() && !attentionBackend.get().equals(name)) {
      throw BifocalException.of(
          ErrorCode.INVALID_OPTION,
          "attention_backend is given twice",
          attentionBackend.get() + " and " + name,
          "one name");
    }
    return new AttentionConfigReader(Option.some(name), said);
  }

  /**
   * Reads one key and its value as text, for instance {@code use_trtllm_attention} and {@code 0}.
   */
  public AttentionConfigReader key(String name, String value) {
    return value(name, parsed(value).getOrElse(JsonNodeFactory.instance.textNode(value)));
  }

  /**
   * Reads a JSON object of keys.
   *
   * @throws BifocalException {@code MALFORMED_INPUT} when it is not one
   */
  public AttentionConfigReader json(String text) {
    JsonNode object;
    try {
      object = MAPPER.readTree(text);
    } catch (JsonProcessingException e) {
      throw BifocalException.of(
          ErrorCode.MALFORMED_INPUT, "attention_config", FileFailure.reason(e), "a JSON object");
    }
    if (!object.isObject()) {
      throw BifocalException.of(
          ErrorCode.MALFORMED_INPUT, "attention_config", text, "a JSON object");
    }
    AttentionConfigReader reader = this;
    for (java.util.Map.Entry<String, JsonNode> entry : object.properties()) {
      if (!entry.getValue().isNull()) {
        reader = reader.value(entry.getKey(), entry.getValue());
      } else {
        known(entry.getKey());
      }
    }
    return reader;
  }

  /**
   * The configuration.
   *
   * @throws BifocalException {@code INVALID_OPTION} when values are wrong or exclude each other
   */
  public AttentionConfig config() {
    AttentionConfig.Builder builder = AttentionConfig.builder();
    attentionBackend.forEach(builder::attentionBackend);
    said.forEach((name, value) -> known(name).say().accept(builder, value));
    return builder.build();
  }

  /** JSON Schema of the configuration's JSON form. */
  public static ObjectNode schema() {
    ObjectNode schema = JsonNodeFactory.instance.objectNode();
    schema.put("$schema", "https://json-schema.org/draft/2020-12/schema");
    schema.put("title", "Bifocal attention configuration");
    schema.put("type", "object");
    schema.put("additionalProperties", false);
    ObjectNode properties = schema.putObject("properties");
    ConfigKeys.ALL.forEach(
        key ->
            properties.set(
                key.name(), key.schema().deepCopy().put("description", key.description())));
    return schema;
  }

  private AttentionConfigReader value(String name, JsonNode value) {
    known(name);
    Option<JsonNode> before = said.get(name);
    if (before.isDefined() && !before.get().equals(value)) {
      throw BifocalException.of(
          ErrorCode.INVALID_OPTION,
          "attention_config." + name + " is given twice",
          before.get() + " and " + value,
          "one value");
    }
    return new AttentionConfigReader(attentionBackend, said.put(name, value));
  }

  private static ConfigKey known(String name) {
    return ConfigKeys.BY_NAME
        .get(name)
        .getOrElseThrow(() -> unknown(name, ConfigKeys.RETIRED.get(name)));
  }

  private static BifocalException unknown(String name, Option<String> successor) {
    return successor.isDefined()
        ? BifocalException.of(
            ErrorCode.INVALID_OPTION,
            "attention_config."
                + name
                + " is retired and not read; "
                + successor.get()
                + " takes its place")
        : BifocalException.of(
            ErrorCode.INVALID_OPTION,
            "unknown key '"
                + name
                + "' of attention_config; "
                + NearestName.adviceElseAll(name, ConfigKeys.BY_NAME.keySet()));
  }

  /** Numbers, booleans and objects are JSON; everything else is text. */
  private static Option<JsonNode> parsed(String value) {
    try {
      return Option.of(MAPPER.readTree(value)).filter(node -> !node.isMissingNode());
    } catch (JsonProcessingException notJson) {
      return Option.none();
    }
  }
}
