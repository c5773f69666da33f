package bifocal.cuda.flashattention;

import bifocal.cuda.pack.PackRefusal;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.control.Validation;
import java.nio.file.Path;

/** Reads the manifest of a pack. */
final class ForwardManifest {
  /** The version of manifests that this build reads. */
  static final int FORMAT = 1;

  /** What the forwards are built from. */
  static final String PACKAGE = "flash-attn-4";

  /** The version whose arguments this build passes. */
  static final String VERSION = "4.0.0b36";

  private static final String FAMILY = "fa4";
  private static final String DTYPE = "bf16";
  private static final ObjectMapper MAPPER =
      JsonMapper.builder().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS).build();

  private ForwardManifest() {}

  static Validation<PackRefusal, ForwardPack> read(Path directory, String json) {
    try {
      return Validation.valid(pack(directory, MAPPER.readTree(json)));
    } catch (Refused e) {
      return Validation.invalid(e.refusal);
    } catch (JsonProcessingException e) {
      return Validation.invalid(malformed("manifest", e.getOriginalMessage(), "JSON").refusal);
    }
  }

  private static ForwardPack pack(Path directory, JsonNode json) {
    if (json.path("format").asInt(-1) != FORMAT) {
      throw format("format of the manifest in " + directory, json.path("format").toString());
    }
    if (!text(json, "family").equals(FAMILY)) {
      throw malformed("family", text(json, "family"), FAMILY);
    }
    Map<ForwardKey, ForwardEntry> modules = LinkedHashMap.empty();
    for (JsonNode node : json.path("modules")) {
      ForwardEntry entry = entry(node);
      if (modules.containsKey(entry.key())) {
        throw malformed("modules", "two for the " + entry.key().label(), "one");
      }
      modules = modules.put(entry.key(), entry);
    }
    Map<String, String> runtime = LinkedHashMap.empty();
    for (JsonNode node : json.path("runtime")) {
      runtime = runtime.put(plain(text(node, "file")), text(node, "sha256"));
    }
    String needed = plain(text(json.path("needs"), "file"));
    return new ForwardPack(directory, text(json, "target"), modules, runtime, needed);
  }

  private static ForwardEntry entry(JsonNode node) {
    String built = text(node, "package") + " " + text(node, "version");
    if (!built.equals(PACKAGE + " " + VERSION)) {
      throw format("module " + text(node, "name"), "built from " + built);
    }
    if (!text(node, "dtype").equals(DTYPE)) {
      throw malformed("dtype", text(node, "dtype"), DTYPE);
    }
    return new ForwardEntry(
        new ForwardKey(
            number(node, "head_size"),
            number(node, "group"),
            number(node, "page_size"),
            flag(node, "window")),
        text(node, "name"),
        plain(text(node, "file")),
        text(node, "sha256"));
  }

  /** A name that leads to no other directory. */
  private static String plain(String name) {
    if (name.contains("/") || name.contains("\\") || name.startsWith(".")) {
      throw malformed("file", name, "the name of a file beside the manifest");
    }
    return name;
  }

  private static String text(JsonNode node, String name) {
    JsonNode value = node.path(name);
    if (!value.isTextual() || value.textValue().isEmpty()) {
      throw malformed(name, seen(value), "text");
    }
    return value.textValue();
  }

  private static int number(JsonNode node, String name) {
    JsonNode value = node.path(name);
    if (!value.isInt() || value.intValue() < 1) {
      throw malformed(name, seen(value), "a size");
    }
    return value.intValue();
  }

  private static boolean flag(JsonNode node, String name) {
    JsonNode value = node.path(name);
    if (!value.isBoolean()) {
      throw malformed(name, seen(value), "true or false");
    }
    return value.booleanValue();
  }

  private static String seen(JsonNode value) {
    return value.isMissingNode() ? "no such field" : value.toString();
  }

  private static Refused format(String what, String seen) {
    return new Refused(
        new PackRefusal(
            PackRefusal.Code.FORMAT,
            what,
            seen,
            "format " + FORMAT + ", of " + PACKAGE + " " + VERSION,
            ForwardPack.REMEDY));
  }

  private static Refused malformed(String what, String seen, String wanted) {
    return new Refused(
        new PackRefusal(
            PackRefusal.Code.MALFORMED,
            what + " in the manifest of FlashAttention forwards",
            seen,
            wanted,
            ForwardPack.REMEDY));
  }

  /** Carries a refusal out of the reader. */
  private static final class Refused extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient PackRefusal refusal;

    Refused(PackRefusal refusal) {
      super(refusal.line());
      this.refusal = refusal;
    }
  }
}
