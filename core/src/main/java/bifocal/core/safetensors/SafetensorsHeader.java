package bifocal.core.safetensors;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.FileFailure;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.io.IOException;

/**
 * What a file's header says: free texts, and for each tensor its type, shape and place.
 *
 * @param metadata texts by key
 * @param entries tensors by name
 */
record SafetensorsHeader(Map<String, String> metadata, Map<String, Entry> entries) {
  private static final String METADATA = "__metadata__";
  private static final Seq<String> KEYS = Vector.of("dtype", "shape", "data_offsets");
  private static final JsonMapper MAPPER =
      JsonMapper.builder()
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .enable(DeserializationFeature.FAIL_ON_READING_DUP_TREE_KEY)
          .build();

  /**
   * One tensor.
   *
   * @param begin first byte, from the end of the header
   * @param end byte behind the last
   */
  record Entry(SafetensorsType type, long[] shape, long begin, long end) {}

  /** Bytes behind the header: the tensors fill them. */
  long dataBytes() {
    return entries.values().map(Entry::end).max().getOrElse(0L);
  }

  /**
   * Reads a header and checks that the tensors fill the data from its first byte to its last,
   * without gaps and without overlap.
   *
   * @param fileBytes bytes of the whole file
   * @param dataStart where the header ends
   * @throws BifocalException {@code MALFORMED_INPUT}
   */
  static SafetensorsHeader parse(byte[] json, long fileBytes, long dataStart) {
    JsonNode root = object("header", tree(json));
    Map<String, String> metadata = LinkedHashMap.empty();
    Map<String, Entry> entries = LinkedHashMap.empty();
    for (var field : root.properties()) {
      if (field.getKey().equals(METADATA)) {
        metadata = texts(field.getValue());
      } else {
        entries = entries.put(field.getKey(), entry(field.getKey(), field.getValue()));
      }
    }
    requireWhole(entries, fileBytes, dataStart);
    requireFilled(entries, fileBytes - dataStart);
    return new SafetensorsHeader(metadata, entries);
  }

  private static JsonNode tree(byte[] json) {
    try {
      return MAPPER.readTree(json);
    } catch (IOException e) {
      throw BifocalException.of(
              ErrorCode.MALFORMED_INPUT, "header", FileFailure.reason(e), "a JSON object")
          .causedBy(e);
    }
  }

  private static Map<String, String> texts(JsonNode node) {
    Map<String, String> texts = LinkedHashMap.empty();
    for (var field : object(METADATA, node).properties()) {
      if (!field.getValue().isTextual()) {
        throw malformed(METADATA + "." + field.getKey() + ": not a text");
      }
      texts = texts.put(field.getKey(), field.getValue().textValue());
    }
    return texts;
  }

  private static Entry entry(String name, JsonNode node) {
    String where = "tensor '" + name + "'";
    for (var field : object(where, node).properties()) {
      if (!KEYS.contains(field.getKey())) {
        throw malformed(where + ": unknown key '" + field.getKey() + "'");
      }
    }
    for (String key : KEYS) {
      if (!node.has(key)) {
        throw malformed(where + ": no " + key);
      }
    }
    SafetensorsType type =
        SafetensorsType.find(node.get("dtype").asText())
            .getOrElseThrow(
                () ->
                    BifocalException.of(
                        ErrorCode.MALFORMED_INPUT,
                        where + ": dtype",
                        node.get("dtype").asText(),
                        SafetensorsType.names().mkString(", ")));
    long[] shape = numbers(where + ": shape", node.get("shape"));
    long[] offsets = numbers(where + ": data_offsets", node.get("data_offsets"));
    if (offsets.length != 2 || offsets[0] > offsets[1]) {
      throw malformed(where + ": data_offsets are not a first byte and the byte behind the last");
    }
    requireBytes(where, type, shape, offsets[1] - offsets[0]);
    return new Entry(type, shape, offsets[0], offsets[1]);
  }

  private static void requireBytes(String where, SafetensorsType type, long[] shape, long bytes) {
    long needed = type.dtype().bytes();
    try {
      for (long size : shape) {
        needed = Math.multiplyExact(needed, size);
      }
    } catch (ArithmeticException e) {
      throw malformed(where + ": the shape's size does not fit 64 bits").causedBy(e);
    }
    if (needed != bytes) {
      throw BifocalException.of(
          ErrorCode.MALFORMED_INPUT, where, bytes + " bytes", needed + " bytes for its shape");
    }
  }

  private static void requireWhole(Map<String, Entry> entries, long fileBytes, long dataStart) {
    long dataBytes = fileBytes - dataStart;
    for (var named : entries.toVector().sortBy(e -> e._2().end()).sortBy(e -> e._2().begin())) {
      if (named._2().end() > dataBytes) {
        long most = entries.values().map(Entry::end).max().getOrElse(0L);
        throw BifocalException.of(
                ErrorCode.MALFORMED_INPUT,
                "the file is cut: tensor '" + named._1() + "' ends beyond the file",
                fileBytes + " bytes",
                most > Long.MAX_VALUE - dataStart
                    ? "more than any file holds"
                    : (dataStart + most) + " bytes")
            .withRemedy("write or copy it again");
      }
    }
  }

  private static void requireFilled(Map<String, Entry> entries, long dataBytes) {
    long filled = 0;
    for (var named : entries.toVector().sortBy(e -> e._2().end()).sortBy(e -> e._2().begin())) {
      Entry entry = named._2();
      String where = "tensor '" + named._1() + "'";
      if (entry.begin() < filled) {
        throw malformed(where + ": overlaps another tensor at byte " + entry.begin());
      }
      if (entry.begin() > filled) {
        throw malformed(where + ": nothing fills the bytes " + filled + ".." + entry.begin());
      }
      filled = entry.end();
    }
    if (filled != dataBytes) {
      throw malformed("data: " + (dataBytes - filled) + " bytes belong to no tensor");
    }
  }

  private static long[] numbers(String where, JsonNode node) {
    if (!node.isArray()) {
      throw malformed(where + ": not an array");
    }
    long[] numbers = new long[node.size()];
    for (int i = 0; i < numbers.length; i++) {
      JsonNode number = node.get(i);
      if (!number.isIntegralNumber() || !number.canConvertToLong() || number.longValue() < 0) {
        throw malformed(where + ": not whole numbers from 0 to 2^63-1");
      }
      numbers[i] = number.longValue();
    }
    return numbers;
  }

  private static JsonNode object(String where, JsonNode node) {
    if (!node.isObject()) {
      throw malformed(where + ": not an object");
    }
    return node;
  }

  private static BifocalException malformed(String text) {
    return BifocalException.of(ErrorCode.MALFORMED_INPUT, text);
  }
}
