package bifocal.core.model;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.model.ModelShape.Kind;
import bifocal.core.model.ModelShape.Latent;
import bifocal.core.model.ModelShape.MmPrefix;
import bifocal.core.model.ModelShape.Sparse;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The shipped catalogue of public models. Each record of its file names the pages it was read from.
 *
 * <p>The file says how layers alternate in words; this class turns the words into layer kinds with
 * declared masks.
 */
public final class ModelCatalog {
  private static final String RESOURCE = "models.json";
  private static final Pattern RATIO =
      Pattern.compile("(\\d+) (sliding|chunked-local) : (\\d+) full.*");
  private static final Pattern POWER = Pattern.compile("(\\d+)\\^-0\\.5");
  private static final String GEMMA_4 = "Gemma 4";
  private static final String GEMMA_3 = "Gemma 3";

  private final Seq<ModelShape> models;

  private ModelCatalog(Seq<ModelShape> models) {
    this.models = models;
  }

  /** Reads the shipped catalogue. */
  public static ModelCatalog shipped() {
    try (InputStream in = ModelCatalog.class.getResourceAsStream(RESOURCE)) {
      if (in == null) {
        throw BifocalException.of(ErrorCode.INTERNAL, "the model catalogue is not in the jar");
      }
      JsonNode root = new ObjectMapper().readTree(in);
      return new ModelCatalog(Vector.ofAll(root.get("models")).map(ModelCatalog::shape));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** All models, in the file's order. */
  public Seq<ModelShape> models() {
    return models;
  }

  /** A model by its id; absent when the catalogue has none of that id. */
  public Option<ModelShape> find(String id) {
    return models.find(model -> model.id().equals(id));
  }

  private static ModelShape shape(JsonNode node) {
    Option<Latent> latent = latent(node.get("mla"));
    return new ModelShape(
        node.get("id").asText(),
        node.get("family").asText(),
        integer(node, "num_layers"),
        kinds(node),
        mmPrefix(node.get("mm_prefix")),
        imageTokens(node.get("image_tokens")),
        integer(node, "max_context"),
        latent,
        sparse(node.get("sparse")),
        Vector.ofAll(node.get("unconfirmed_fields")).map(JsonNode::asText));
  }

  private static Seq<Kind> kinds(JsonNode node) {
    Option<String> pattern = text(node, "layer_pattern");
    if (pattern.isEmpty() || integer(node, "head_size_k").isEmpty()) {
      return Vector.empty();
    }
    Matcher ratio = RATIO.matcher(pattern.get());
    if (!ratio.matches()) {
      return Vector.of(kind(node, "full", 1, AttentionMask.CAUSAL));
    }
    Seq<Kind> kinds = Vector.empty();
    int windowed = Integer.parseInt(ratio.group(1));
    int full = Integer.parseInt(ratio.group(3));
    if (ratio.group(2).equals("sliding")) {
      AttentionMask window = AttentionMask.CAUSAL.withWindow(node.get("sliding_window").asInt());
      kinds = kinds.append(kind(node, "sliding", windowed, window));
    } else {
      int chunk = node.get("attention_chunk_size").asInt();
      AttentionMask chunked =
          new AttentionMask(true, Option.none(), ImageMask.NONE, Option.some(chunk));
      kinds = kinds.append(kind(node, "chunked", windowed, chunked));
    }
    return kinds.append(kind(node, "full", full, AttentionMask.CAUSAL));
  }

  private static Kind kind(JsonNode model, String name, int share, AttentionMask text) {
    JsonNode perKind = model.path("per_layer_kind").path(name);
    JsonNode sizes = perKind.isObject() ? perKind : model;
    int headSize = sizes.get("head_size_k").asInt();
    return new Kind(
        name,
        share,
        sizes.get("q_heads").asInt(),
        sizes.get("kv_heads").asInt(),
        headSize,
        sizes.get("head_size_v").asInt(),
        text.withImages(imageMask(model, name)),
        scale(model, headSize),
        Option.of(model.get("attn_softcap")).filter(JsonNode::isNumber).map(JsonNode::asDouble),
        model.path("sinks").asBoolean(false));
  }

  /**
   * Which layers join images, and how: in Gemma 4 the sliding ones alone; Gemma 3 and 4 clamp the
   * past of images to the window, the other families do not.
   */
  private static ImageMask imageMask(JsonNode model, String kind) {
    if (mmPrefix(model.get("mm_prefix")) == MmPrefix.NONE) {
      return ImageMask.NONE;
    }
    return switch (model.get("family").asText()) {
      case GEMMA_4 -> kind.equals("sliding") ? ImageMask.CLAMP_PAST : ImageMask.NONE;
      case GEMMA_3 -> ImageMask.CLAMP_PAST;
      default -> ImageMask.OVERRIDE;
    };
  }

  private static double scale(JsonNode model, int headSize) {
    return text(model, "query_scale")
        .map(
            stated -> {
              Matcher power = POWER.matcher(stated);
              return power.matches()
                  ? Math.pow(Integer.parseInt(power.group(1)), -0.5)
                  : Double.parseDouble(stated);
            })
        .getOrElse(Math.pow(headSize, -0.5));
  }

  private static MmPrefix mmPrefix(JsonNode value) {
    return switch (value.asText()) {
      case "vision" -> MmPrefix.VISION;
      case "prompt" -> MmPrefix.PROMPT;
      default -> MmPrefix.NONE;
    };
  }

  private static Option<Integer> imageTokens(JsonNode value) {
    return value == null || value.isNull()
        ? Option.none()
        : integer(value, "default").orElse(integer(value, "per_image"));
  }

  private static Option<Latent> latent(JsonNode mla) {
    if (mla == null || !mla.isObject()) {
      return Option.none();
    }
    int cached = mla.get("cached_head_size").asInt();
    int rope = mla.get("qk_rope_head_dim").asInt();
    return Option.some(
        new Latent(
            integer(mla, "kv_lora_rank").getOrElse(cached - rope),
            integer(mla, "qk_nope_head_dim").getOrElse(cached - rope),
            rope,
            integer(mla, "v_head_dim").getOrElse(cached),
            cached));
  }

  private static Option<Sparse> sparse(JsonNode sparse) {
    if (sparse == null || !sparse.isObject()) {
      return Option.none();
    }
    return Option.some(
        new Sparse(
            sparse.get("kind").asText(),
            integer(sparse, "topk_tokens").orElse(integer(sparse, "topk_blocks")).getOrElse(0),
            integer(sparse, "block_tokens")));
  }

  private static Option<Integer> integer(JsonNode node, String field) {
    return Option.of(node.get(field)).filter(JsonNode::isInt).map(JsonNode::asInt);
  }

  private static Option<String> text(JsonNode node, String field) {
    return Option.of(node.get(field)).filter(JsonNode::isTextual).map(JsonNode::asText);
  }
}
