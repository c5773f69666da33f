package bifocal.cuda.flashinfer;

import bifocal.core.tensor.DType;
import bifocal.cuda.flashinfer.ModuleKey.Engine;
import bifocal.cuda.pack.PackRefusal;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import io.vavr.collection.HashSet;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.nio.file.Path;

/** Reads the manifest of a pack. Modules of kinds that nothing here calls are left out. */
final class ModuleManifest {
  /** The version of manifests that this build reads. */
  static final int FORMAT = 1;

  private static final String FAMILY = "flashinfer";
  private static final ObjectMapper MAPPER =
      JsonMapper.builder().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS).build();
  private static final Seq<DType> TYPES = Vector.of(DType.BF16, DType.FP16);

  private ModuleManifest() {}

  static Validation<PackRefusal, FlashInferPack> read(Path directory, String json) {
    try {
      return Validation.valid(pack(directory, MAPPER.readTree(json)));
    } catch (Refused e) {
      return Validation.invalid(e.refusal);
    } catch (JsonProcessingException e) {
      return Validation.invalid(malformed("manifest", e.getOriginalMessage(), "JSON").refusal);
    }
  }

  private static FlashInferPack pack(Path directory, JsonNode json) {
    if (json.path("format").asInt(-1) != FORMAT) {
      throw new Refused(
          new PackRefusal(
              PackRefusal.Code.FORMAT,
              "format of the manifest in " + directory,
              json.path("format").toString(),
              Integer.toString(FORMAT),
              "build the pack with the scripts of this version"));
    }
    if (!text(json, "family").equals(FAMILY)) {
      throw malformed("family", text(json, "family"), FAMILY);
    }
    Map<ModuleKey, ModuleEntry> modules = LinkedHashMap.empty();
    for (JsonNode node : json.path("modules")) {
      for (ModuleEntry entry : module(node)) {
        if (modules.containsKey(entry.key())) {
          throw malformed("modules", "two for " + entry.key().label(), "one");
        }
        modules = modules.put(entry.key(), entry);
      }
    }
    Map<String, String> runtime = LinkedHashMap.empty();
    for (JsonNode node : json.path("runtime")) {
      runtime = runtime.put(plain(text(node, "file")), text(node, "sha256"));
    }
    return new FlashInferPack(directory, text(json, "target"), modules, runtime);
  }

  private static Option<ModuleEntry> module(JsonNode node) {
    return key(node)
        .map(
            key -> {
              requireVersion(node);
              return new ModuleEntry(
                  key,
                  text(node, "uri"),
                  plain(text(node, "file")),
                  text(node, "sha256"),
                  text(node, "version"),
                  signatures(node),
                  masks(node));
            });
  }

  private static void requireVersion(JsonNode node) {
    String name = text(node, "package") + " " + text(node, "version");
    String wanted = ModuleSignatures.PACKAGE + " " + ModuleSignatures.VERSION;
    if (!name.equals(wanted)) {
      throw new Refused(
          new PackRefusal(
              PackRefusal.Code.FORMAT,
              "module " + text(node, "uri"),
              "built from " + name,
              wanted,
              "build the pack from the version that this build calls"));
    }
  }

  private static Option<ModuleKey> key(JsonNode node) {
    Option<DType> type = type(node);
    return switch (text(node, "kind")) {
      case "decode" ->
          type.map(
              dtype ->
                  new ModuleKey.Decode(
                      dtype, headSize(node), flag(node, "window"), flag(node, "softcap")));
      case "prefill" ->
          type.map(
              dtype ->
                  new ModuleKey.Prefill(
                      engine(node),
                      dtype,
                      headSize(node),
                      flag(node, "window"),
                      flag(node, "softcap")));
      case "xqa" ->
          type.map(
              dtype ->
                  new ModuleKey.Xqa(
                      dtype,
                      number(node, node.has("head_size") ? "head_size" : "head_dim"),
                      number(node, "page_size"),
                      number(node, "group"),
                      flag(node, "window")));
      default -> Option.none();
    };
  }

  /** The one type of queries, keys, values and outputs; absent for a module that has several. */
  private static Option<DType> type(JsonNode node) {
    String q = node.path("dtype_q").asText();
    return q.equals(node.path("dtype_kv").asText()) && q.equals(node.path("dtype_o").asText())
        ? TYPES.find(known -> known.label().equals(q) || (known == DType.FP16 && q.equals("f16")))
        : Option.none();
  }

  private static int headSize(JsonNode node) {
    int size = number(node, "head_dim_qk");
    if (number(node, "head_dim_vo") != size) {
      throw malformed("head_dim_vo", node.path("head_dim_vo").toString(), Integer.toString(size));
    }
    return size;
  }

  private static Engine engine(JsonNode node) {
    String name = text(node, "engine");
    return Vector.of(Engine.values())
        .find(engine -> engine.label().equals(name))
        .getOrElseThrow(() -> malformed("engine", name, "fa2 or fa3"));
  }

  private static Map<String, String> signatures(JsonNode node) {
    Map<String, String> found = LinkedHashMap.empty();
    for (JsonNode export : node.path("exports")) {
      found = found.put(text(export, "name"), text(export, "signature"));
    }
    return found;
  }

  private static Set<Integer> masks(JsonNode node) {
    Set<Integer> masks = HashSet.empty();
    for (JsonNode mask : node.path("masks").path(ModuleSignatures.PAGED_RUN)) {
      masks = masks.add(mask.asInt());
    }
    return masks;
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
      throw malformed(name, value.isMissingNode() ? "no such field" : value.toString(), "text");
    }
    return value.textValue();
  }

  private static int number(JsonNode node, String name) {
    JsonNode value = node.path(name);
    if (!value.isInt() || value.intValue() < 1) {
      throw malformed(name, value.isMissingNode() ? "no such field" : value.toString(), "a size");
    }
    return value.intValue();
  }

  private static boolean flag(JsonNode node, String name) {
    JsonNode value = node.path(name);
    if (!value.isBoolean()) {
      throw malformed(
          name, value.isMissingNode() ? "no such field" : value.toString(), "true or false");
    }
    return value.booleanValue();
  }

  private static Refused malformed(String what, String seen, String wanted) {
    return new Refused(
        new PackRefusal(
            PackRefusal.Code.MALFORMED,
            what + " in the manifest of FlashInfer modules",
            seen,
            wanted,
            "build the pack again"));
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
