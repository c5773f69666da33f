package bifocal.cuda.flashattention;

import bifocal.core.tensor.DType;
import bifocal.cuda.pack.ManifestFields;
import bifocal.cuda.pack.PackRefusal;
import com.fasterxml.jackson.databind.JsonNode;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Vector;
import io.vavr.control.Validation;
import java.nio.file.Path;
import java.util.function.Function;

/** Reads the manifest of a pack. */
final class ForwardManifest {
  /** The version of manifests that this build reads. */
  static final int FORMAT = 2;

  /** What the forwards are built from. */
  static final String PACKAGE = "flash-attn-4";

  /** The version whose arguments this build passes. */
  static final String VERSION = "4.0.0b36";

  private static final String FAMILY = "fa4";
  private static final Vector<DType> DTYPES = Vector.of(DType.BF16, DType.FP16);
  private static final String NAME = "manifest of FlashAttention forwards";

  private ForwardManifest() {}

  static Validation<PackRefusal, ForwardPack> read(Path directory, String json) {
    return ManifestFields.read(NAME, json, root -> pack(directory, root));
  }

  private static ForwardPack pack(Path directory, JsonNode json) {
    if (json.path("format").asInt(-1) != FORMAT) {
      throw format("format of the manifest in " + directory, json.path("format").toString());
    }
    ManifestFields root = ManifestFields.of(NAME, json);
    root.oneOf("family", Vector.of(FAMILY), Function.identity());
    Map<ForwardKey, ForwardEntry> modules = LinkedHashMap.empty();
    for (JsonNode node : root.list("modules")) {
      ForwardEntry entry = entry(ManifestFields.of(NAME + ": module", node));
      if (modules.containsKey(entry.key())) {
        throw ManifestFields.malformed(
            NAME + ": modules", "two for the " + entry.key().label(), "one");
      }
      modules = modules.put(entry.key(), entry);
    }
    Map<String, String> runtime = LinkedHashMap.empty();
    for (JsonNode node : root.list("runtime")) {
      ManifestFields file = ManifestFields.of(NAME + ": runtime", node);
      runtime = runtime.put(file.file("file"), file.text("sha256"));
    }
    String needed = ManifestFields.of(NAME + ": needs", root.object("needs")).file("file");
    return new ForwardPack(directory, root.text("target"), modules, runtime, needed);
  }

  private static ForwardEntry entry(ManifestFields module) {
    String built = module.text("package") + " " + module.text("version");
    if (!built.equals(PACKAGE + " " + VERSION)) {
      throw format("module " + module.text("name"), "built from " + built);
    }
    return new ForwardEntry(
        new ForwardKey(
            module.oneOf("dtype", DTYPES, DType::label),
            module.number("head_size", 1),
            module.number("group", 1),
            module.number("page_size", 1),
            module.oneOf("sight", Vector.of(ForwardKey.Sight.values()), ForwardKey.Sight::label)),
        module.text("name"),
        module.file("file"),
        module.text("sha256"));
  }

  private static ManifestFields.Refused format(String what, String seen) {
    return new ManifestFields.Refused(
        new PackRefusal(
            PackRefusal.Code.FORMAT,
            what,
            seen,
            "format " + FORMAT + ", of " + PACKAGE + " " + VERSION,
            ForwardPack.REMEDY));
  }
}
