package bifocal.cuda.flashinfer;

import bifocal.core.tensor.DType;
import bifocal.cuda.flashinfer.ModuleKey.Engine;
import bifocal.cuda.pack.ManifestFields;
import bifocal.cuda.pack.PackRefusal;
import com.fasterxml.jackson.databind.JsonNode;
import io.vavr.collection.HashSet;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.nio.file.Path;
import java.util.function.Function;

/** Reads the manifest of a pack. Modules of kinds that nothing here calls are left out. */
final class ModuleManifest {
  /** The version of manifests that this build reads. */
  static final int FORMAT = 1;

  private static final String FAMILY = "flashinfer";
  private static final String NAME = "manifest of FlashInfer modules";
  private static final Seq<DType> TYPES = Vector.of(DType.BF16, DType.FP16);

  private ModuleManifest() {}

  static Validation<PackRefusal, FlashInferPack> read(Path directory, String json) {
    return ManifestFields.read(NAME, json, root -> pack(directory, root));
  }

  private static FlashInferPack pack(Path directory, JsonNode json) {
    if (json.path("format").asInt(-1) != FORMAT) {
      throw new ManifestFields.Refused(
          new PackRefusal(
              PackRefusal.Code.FORMAT,
              "format of the manifest in " + directory,
              json.path("format").toString(),
              Integer.toString(FORMAT),
              "build the pack with the scripts of this version"));
    }
    ManifestFields root = ManifestFields.of(NAME, json);
    root.oneOf("family", Vector.of(FAMILY), Function.identity());
    Map<ModuleKey, ModuleEntry> modules = LinkedHashMap.empty();
    for (JsonNode node : root.list("modules")) {
      for (ModuleEntry entry : module(ManifestFields.of(NAME + ": module", node))) {
        if (modules.containsKey(entry.key())) {
          throw ManifestFields.malformed(
              NAME + ": modules", "two for " + entry.key().label(), "one");
        }
        modules = modules.put(entry.key(), entry);
      }
    }
    Map<String, String> runtime = LinkedHashMap.empty();
    for (JsonNode node : root.list("runtime")) {
      ManifestFields file = ManifestFields.of(NAME + ": runtime", node);
      runtime = runtime.put(file.file("file"), file.text("sha256"));
    }
    return new FlashInferPack(directory, root.text("target"), modules, runtime);
  }

  private static Option<ModuleEntry> module(ManifestFields module) {
    return key(module)
        .map(
            key -> {
              requireVersion(module);
              return new ModuleEntry(
                  key,
                  module.text("uri"),
                  module.file("file"),
                  module.text("sha256"),
                  module.text("version"),
                  signatures(module),
                  masks(module));
            });
  }

  private static void requireVersion(ManifestFields module) {
    String name = module.text("package") + " " + module.text("version");
    String wanted = ModuleSignatures.PACKAGE + " " + ModuleSignatures.VERSION;
    if (!name.equals(wanted)) {
      throw new ManifestFields.Refused(
          new PackRefusal(
              PackRefusal.Code.FORMAT,
              "module " + module.text("uri"),
              "built from " + name,
              wanted,
              "build the pack from the version that this build calls"));
    }
  }

  private static Option<ModuleKey> key(ManifestFields module) {
    Option<DType> type = type(module);
    return switch (module.text("kind")) {
      case "decode" ->
          type.map(
              dtype ->
                  new ModuleKey.Decode(
                      dtype, headSize(module), module.flag("window"), module.flag("softcap")));
      case "prefill" ->
          type.map(
              dtype ->
                  new ModuleKey.Prefill(
                      module.oneOf("engine", Vector.of(Engine.values()), Engine::label),
                      dtype,
                      headSize(module),
                      module.flag("window"),
                      module.flag("softcap")));
      case "xqa" ->
          type.map(
              dtype ->
                  new ModuleKey.Xqa(
                      dtype,
                      module.number("head_size", 1),
                      module.number("page_size", 1),
                      module.number("group", 1),
                      module.flag("window")));
      default -> Option.none();
    };
  }

  /** The one type of queries, keys, values and outputs; absent for a module that has several. */
  private static Option<DType> type(ManifestFields module) {
    if (!module.has("dtype_q")) {
      return Option.none();
    }
    String q = module.text("dtype_q");
    return q.equals(module.text("dtype_kv")) && q.equals(module.text("dtype_o"))
        ? TYPES.find(known -> known.label().equals(q) || (known == DType.FP16 && q.equals("f16")))
        : Option.none();
  }

  private static int headSize(ManifestFields module) {
    int size = module.number("head_dim_qk", 1);
    int values = module.number("head_dim_vo", 1);
    if (values != size) {
      throw ManifestFields.malformed(
          module.at() + ".head_dim_vo", Integer.toString(values), Integer.toString(size));
    }
    return size;
  }

  private static Map<String, String> signatures(ManifestFields module) {
    Map<String, String> found = LinkedHashMap.empty();
    for (JsonNode export : module.list("exports")) {
      ManifestFields function = ManifestFields.of(module.at() + ".exports", export);
      found = found.put(function.text("name"), function.text("signature"));
    }
    return found;
  }

  private static Set<Integer> masks(ManifestFields module) {
    Set<Integer> masks = HashSet.empty();
    if (module.has("masks")) {
      for (JsonNode mask : module.object("masks").path(ModuleSignatures.PAGED_RUN)) {
        masks = masks.add(mask.asInt());
      }
    }
    return masks;
  }
}
