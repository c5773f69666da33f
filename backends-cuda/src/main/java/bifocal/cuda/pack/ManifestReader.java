package bifocal.cuda.pack;

import bifocal.core.tensor.DType;
import com.fasterxml.jackson.databind.JsonNode;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;

/** Reads a manifest; a field that it does not know is refused, because it may change a meaning. */
final class ManifestReader {
  private static final Seq<DType> MODEL_TYPES = Vector.of(DType.BF16, DType.FP16, DType.FP32);

  private ManifestReader() {}

  /** The manifest, or the first thing that is wrong with it. */
  static Validation<PackRefusal, PackManifest> read(String json) {
    return ManifestFields.read(PackManifest.FILE, json, ManifestReader::manifest);
  }

  private static PackManifest manifest(JsonNode json) {
    requireFormat(json);
    ManifestFields fields =
        ManifestFields.only(
            PackManifest.FILE,
            json,
            "format",
            "target",
            "backend",
            "warp_size",
            "triton",
            "kernels");
    String backend = fields.text("backend");
    if (!backend.equals("cuda")) {
      throw new ManifestFields.Refused(
          new PackRefusal(
              PackRefusal.Code.TARGET,
              PackManifest.FILE,
              "backend " + backend,
              "backend cuda",
              "use the pack of an sm target"));
    }
    return PackManifest.of(
        fields.text("target"),
        fields.text("triton"),
        fields.list("kernels").map(ManifestReader::kernel));
  }

  /** Asked first: another version may have other fields. */
  private static void requireFormat(JsonNode json) {
    JsonNode format = json.path("format");
    if (!format.isInt() || format.intValue() != PackManifest.FORMAT) {
      throw new ManifestFields.Refused(
          new PackRefusal(
              PackRefusal.Code.FORMAT,
              "format of " + PackManifest.FILE,
              format.isMissingNode() ? "none" : format.toString(),
              Integer.toString(PackManifest.FORMAT),
              "build the pack with the scripts of this version"));
    }
  }

  private static KernelEntry kernel(JsonNode json) {
    ManifestFields fields =
        ManifestFields.only(
            "kernel " + json.path("key").asText("?"),
            json,
            "key",
            "file",
            "sha256",
            "inputs",
            "kernel",
            "select",
            "symbol",
            "warp_size",
            "num_warps",
            "num_stages",
            "shared_memory",
            "global_scratch_size",
            "global_scratch_align",
            "profile_scratch_size",
            "profile_scratch_align",
            "registers",
            "stack",
            "constants",
            "grid",
            "tile",
            "programmatic_launch",
            "arguments");
    return new KernelEntry(
        fields.text("key"),
        fields.file("file"),
        fields.parsed(
            "sha256",
            text -> Option.when(text.matches("[0-9a-f]{64}"), text),
            "64 lower-case hexadecimal digits"),
        fields.text("symbol"),
        specialisation(fields.at() + ".select", fields.object("select")),
        Math.multiplyExact(fields.number("warp_size", 1), fields.number("num_warps", 1)),
        fields.number("shared_memory", 0),
        fields.number("global_scratch_size", 0),
        fields.number("profile_scratch_size", 0),
        fields.has("tile")
            ? Option.some(tile(fields.at() + ".tile", fields.object("tile")))
            : Option.none(),
        grid(fields.at() + ".grid", fields.object("grid")),
        fields.flagOr("programmatic_launch", false),
        fields.list("arguments").map(node -> argument(fields.at(), node)));
  }

  /** A plain name: a manifest must not reach outside its directory. */
  private static Specialisation specialisation(String at, JsonNode json) {
    ManifestFields fields =
        ManifestFields.only(
            at,
            json,
            "use",
            "dtype",
            "head_size",
            "kv",
            "token_scales",
            "engine",
            "variant",
            "group",
            "block_size",
            "softcap",
            "alibi",
            "out");
    DType dtype = fields.oneOf("dtype", MODEL_TYPES, DType::label);
    int headSize = fields.number("head_size", 1);
    String use = fields.text("use");
    return switch (use) {
      case "merge" -> new Specialisation.Merge(dtype, headSize, wide(fields));
      case "write" -> new Specialisation.Write(dtype, cacheFormat(fields), headSize);
      case "prefill" -> attention(Specialisation.Phase.PREFILL, dtype, headSize, fields);
      case "decode" -> attention(Specialisation.Phase.DECODE, dtype, headSize, fields);
      default -> throw ManifestFields.malformed(at + ".use", use, "a known use");
    };
  }

  private static CacheFormat cacheFormat(ManifestFields fields) {
    return new CacheFormat(
        fields.oneOf("kv", Vector.of(CacheFormat.Numbers.values()), CacheFormat.Numbers::label),
        fields.flag("token_scales"));
  }

  private static Specialisation attention(
      Specialisation.Phase phase, DType dtype, int headSize, ManifestFields fields) {
    return new Specialisation.Attention(
        phase,
        fields.oneOf(
            "engine", Vector.of(Specialisation.Engine.values()), Specialisation.Engine::label),
        fields.oneOf(
            "variant", Vector.of(Specialisation.Variant.values()), Specialisation.Variant::label),
        dtype,
        cacheFormat(fields),
        headSize,
        fields.number("group", 1),
        fields.number("block_size", 1),
        fields.flag("softcap"),
        fields.flag("alibi"),
        wide(fields));
  }

  /** Only kernels whose output is wider than their queries say of what type it is. */
  private static boolean wide(ManifestFields fields) {
    return fields.has("out")
        && fields.oneOf("out", Vector.of(DType.FP32), DType::label) == DType.FP32;
  }

  private static KernelEntry.Tile tile(String at, JsonNode json) {
    ManifestFields fields = ManifestFields.only(at, json, "rows", "tokens", "keys");
    return new KernelEntry.Tile(
        fields.number("rows", 1), fields.number("tokens", 1), fields.number("keys", 1));
  }

  private static KernelEntry.Grid grid(String at, JsonNode json) {
    ManifestFields fields = ManifestFields.only(at, json, "x", "y", "z");
    return new KernelEntry.Grid(word(fields, "x"), word(fields, "y"), word(fields, "z"));
  }

  private static GridWord word(ManifestFields fields, String axis) {
    return fields.parsed(axis, GridWord::of, "a known word");
  }

  private static KernelArgument argument(String at, JsonNode json) {
    ManifestFields fields =
        ManifestFields.only(
            at + ".arguments." + json.path("name").asText("?"),
            json,
            "name",
            "kind",
            "element",
            "offset",
            "size",
            "multiple_of",
            "box",
            "swizzle",
            "element_bytes");
    return new KernelArgument(
        fields.text("name"),
        kind(fields),
        fields.text("element"),
        fields.number("offset", 0),
        fields.number("size", 1),
        fields.numberOr("multiple_of", 1, 1));
  }

  private static KernelArgument.Kind kind(ManifestFields fields) {
    String kind = fields.text("kind");
    return switch (kind) {
      case "pointer" -> new KernelArgument.Kind.Pointer();
      case "scalar" -> new KernelArgument.Kind.Scalar();
      case "stride" -> new KernelArgument.Kind.Stride();
      case "tensor_map" ->
          new KernelArgument.Kind.TensorMap(
              fields.list("box").map(JsonNode::intValue),
              fields.number("swizzle", 0),
              fields.number("element_bytes", 1));
      default -> throw ManifestFields.malformed(fields.at() + ".kind", kind, "a known kind");
    };
  }
}
