package bifocal.core.bench;

import bifocal.core.backend.BackendName;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.FileFailure;
import bifocal.core.tensor.DType;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.vavr.collection.LinkedHashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.collection.Vector;
import java.util.Locale;
import java.util.function.Function;

/** Tables of measurements as JSON, for people to read and for hosts to keep. */
public final class CalibrationJson {
  private static final String FORMAT = "bifocal-calibration-1";
  private static final JsonMapper MAPPER =
      JsonMapper.builder()
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
          .build();
  private static final Set<String> TABLE = LinkedHashSet.of("format", "provenance", "times");
  private static final Set<String> PROVENANCE =
      LinkedHashSet.of(
          "machine", "device", "kernels", "java", "version", "commit", "time", "command");
  private static final Set<String> TIME =
      LinkedHashSet.of(
          "child", "dtype", "head_size", "phase", "query_len", "seq_len", "nanos_per_pair");

  private CalibrationJson() {}

  /** The JSON of a table, a line for each time. */
  public static String write(Calibration table) {
    ObjectNode provenance = MAPPER.createObjectNode();
    Provenance of = table.provenance();
    provenance.put("machine", of.machine());
    provenance.put("device", of.device());
    provenance.put("kernels", of.kernels());
    provenance.put("java", of.java());
    provenance.put("version", of.version());
    provenance.put("commit", of.commit());
    provenance.put("time", of.time());
    provenance.put("command", of.command());
    return "{\"format\":\""
        + FORMAT
        + "\",\n\"provenance\":"
        + provenance
        + ",\n\"times\":[\n"
        + table.times().map(CalibrationJson::line).mkString(",\n")
        + "\n]}\n";
  }

  private static String line(ChildTime time) {
    ObjectNode line = MAPPER.createObjectNode();
    line.put("child", time.child().value());
    line.put("dtype", time.dtype().label());
    line.put("head_size", time.headSize());
    line.put("phase", time.phase().name().toLowerCase(Locale.ROOT));
    line.put("query_len", time.queryLen());
    line.put("seq_len", time.seqLen());
    line.put("nanos_per_pair", time.nanosPerPair());
    return line.toString();
  }

  /**
   * The table of a text.
   *
   * @throws BifocalException {@code MALFORMED_INPUT} when it is not one, {@code INVALID_PARAMETER}
   *     for numbers that nobody can have measured
   */
  public static Calibration read(String text) {
    JsonNode table;
    try {
      table = MAPPER.readTree(text);
    } catch (JsonProcessingException e) {
      throw malformed(FileFailure.reason(e), "JSON");
    }
    requireKeys("calibration", table, TABLE);
    if (!table.path("format").asText().equals(FORMAT)) {
      throw malformed("format " + table.path("format"), FORMAT);
    }
    if (!table.path("times").isArray()) {
      throw malformed("times", "an array");
    }
    Seq<ChildTime> times = Vector.ofAll(table.path("times")).map(CalibrationJson::time);
    return new Calibration(provenance(table.path("provenance")), times);
  }

  private static Provenance provenance(JsonNode node) {
    requireKeys("provenance", node, PROVENANCE);
    return new Provenance(
        text(node, "machine"),
        text(node, "device"),
        text(node, "kernels"),
        text(node, "java"),
        text(node, "version"),
        text(node, "commit"),
        text(node, "time"),
        text(node, "command"));
  }

  private static ChildTime time(JsonNode node) {
    requireKeys("time", node, TIME);
    if (!node.path("nanos_per_pair").isNumber()) {
      throw malformed("nanos_per_pair " + node.path("nanos_per_pair"), "a number");
    }
    return new ChildTime(
        BackendName.of(text(node, "child")),
        one("dtype", text(node, "dtype"), Vector.of(DType.values()), DType::label),
        number(node, "head_size"),
        one(
            "phase",
            text(node, "phase"),
            Vector.of(ChildTime.Phase.values()),
            phase -> phase.name().toLowerCase(Locale.ROOT)),
        number(node, "query_len"),
        number(node, "seq_len"),
        node.path("nanos_per_pair").doubleValue());
  }

  private static <T> T one(String key, String label, Seq<T> values, Function<T, String> name) {
    return values
        .find(value -> name.apply(value).equals(label))
        .getOrElseThrow(
            () -> malformed(key + " '" + label + "'", "one of " + values.map(name).mkString(", ")));
  }

  private static String text(JsonNode node, String key) {
    if (!node.path(key).isTextual()) {
      throw malformed(key + " " + node.path(key), "text");
    }
    return node.path(key).textValue();
  }

  private static int number(JsonNode node, String key) {
    if (!node.path(key).isInt()) {
      throw malformed(key + " " + node.path(key), "a whole number");
    }
    return node.path(key).intValue();
  }

  private static void requireKeys(String what, JsonNode node, Set<String> keys) {
    if (!node.isObject()) {
      throw malformed(node.isMissingNode() ? "nothing" : what + " that is none", "an object");
    }
    Seq<String> seen = Vector.ofAll(node::fieldNames);
    if (!LinkedHashSet.ofAll(seen).equals(keys)) {
      throw malformed(what + " with " + seen.mkString(", "), keys.mkString(", "));
    }
  }

  private static BifocalException malformed(String seen, String wanted) {
    return BifocalException.of(ErrorCode.MALFORMED_INPUT, "calibration", seen, wanted);
  }
}
