package bifocal.core.capsule;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.safetensors.Safetensors;
import bifocal.core.tensor.TensorView;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.nio.file.Path;

/**
 * One step of one layer, to be written as a safetensors file: the batch, the layer's mask, where it
 * went, and, if wanted, queries, keys and values. {@code bifocal route --spec} routes the file
 * again; with tensors {@code bifocal attend --in} runs it again.
 *
 * <p>Keys and values are those of whole sequences, read back from the cache after the step's were
 * written, so that a chunk of a prompt has its earlier keys with it.
 *
 * @param group layers that share the step
 * @param batch the step's requests
 * @param requests those that go into the file, in the batch's order
 * @param origin where the capsule comes from
 */
public record StepCapsule(
    LayerGroup group, CommonAttentionMetadata batch, Seq<Integer> requests, Origin origin) {
  /** Metadata key of what routing needs and where the capsule comes from, in JSON. */
  public static final String KEY = "capsule";

  /**
   * Where a capsule comes from.
   *
   * @param backend what ran it
   * @param step number of the step
   * @param layer name of the layer
   * @param route label of the route taken, absent for a backend that does not route
   * @param split whether the policy may divide a batch
   * @param lowering whether the policy may lower images
   */
  public record Origin(
      String backend,
      long step,
      String layer,
      Option<String> route,
      boolean split,
      boolean lowering) {}

  /** A capsule of all live requests. */
  public static StepCapsule of(LayerGroup group, CommonAttentionMetadata batch, Origin origin) {
    return new StepCapsule(group, batch, Vector.range(0, batch.live()), origin);
  }

  /**
   * @throws BifocalException {@code MLA_NOT_EXECUTABLE} or {@code UNSUPPORTED} when no such file
   *     can say what the layer computes
   */
  public StepCapsule {
    Dense layer = dense(group);
    unless(layer.type() == AttentionType.DECODER, "attention type", layer.type(), "decoder");
    unless(layer.mask().chunk().isEmpty(), "mask", "chunked-local", "a window, or none");
    unless(!batch.independentKeys(), "keys", "of another sequence", "of the queries' own");
  }

  /** The same capsule of one request alone. */
  public StepCapsule only(int request) {
    return new StepCapsule(group, batch, Vector.of(request), origin);
  }

  /** Writes batch and mask, whole or not at all; the file can be routed. */
  public void write(Path file) {
    try (Arena arena = Arena.ofConfined()) {
      new Safetensors(texts(LinkedHashMap.empty()), new CapsuleTensors(this, arena).batch())
          .write(file);
    }
  }

  /**
   * Writes everything, whole or not at all; the file can be routed and run.
   *
   * @param q queries of the whole batch
   * @param cache the layer's cache, the step's keys and values written
   * @throws BifocalException {@code UNSUPPORTED} for scales that are not per tensor, {@code
   *     DEVICE_MISMATCH} when the host cannot read the memory
   */
  public void write(Path file, TensorView q, KvCacheView cache, LayerParameters parameters) {
    try (Arena arena = Arena.ofConfined()) {
      CapsuleTensors tensors = new CapsuleTensors(this, arena);
      new Safetensors(texts(cache(cache.spec())), tensors.all(q, cache, parameters)).write(file);
    }
  }

  Dense layer() {
    return dense(group);
  }

  private static Dense dense(LayerGroup group) {
    if (group.spec() instanceof Dense dense) {
      return dense;
    }
    throw BifocalException.of(
        ErrorCode.MLA_NOT_EXECUTABLE,
        "capsule of group " + group.name(),
        group.spec(),
        "dense layers");
  }

  private static void unless(boolean holds, String what, Object seen, Object wanted) {
    if (!holds) {
      throw BifocalException.of(ErrorCode.UNSUPPORTED, what + " of a captured layer", seen, wanted);
    }
  }

  private Map<String, String> texts(Map<String, String> cache) {
    Dense layer = layer();
    Map<String, String> texts =
        LinkedHashMap.<String, String>empty()
            .put("scale", Double.toString(layer.scale()))
            .put("causal", Boolean.toString(layer.mask().causal()));
    texts = put(texts, "sliding_window", layer.mask().window().map(String::valueOf));
    texts = put(texts, "softcap", layer.softcap().map(String::valueOf));
    if (layer.mask().seesImages()) {
      texts = texts.put("mask", layer.mask().images().label());
    }
    for (var text : cache) {
      texts = texts.put(text);
    }
    return texts.put(KEY, described().toString());
  }

  private static Map<String, String> put(
      Map<String, String> texts, String key, Option<String> value) {
    return value.map(text -> texts.put(key, text)).getOrElse(texts);
  }

  private Map<String, String> cache(KvCacheSpec spec) {
    Map<String, String> texts =
        LinkedHashMap.<String, String>empty()
            .put("kv_cache_dtype", layer().kvCacheDtype().label())
            .put("block_size", Integer.toString(spec.blockSize()));
    CacheScales scales = CacheScales.of(spec.scales());
    return scales.one()
        ? texts
        : texts
            .put("k_scale", Float.toString(scales.k()))
            .put("v_scale", Float.toString(scales.v()));
  }

  private ObjectNode described() {
    ObjectNode json = JsonNodeFactory.instance.objectNode();
    json.put("backend", origin.backend());
    json.put("step", origin.step());
    json.put("group", group.name());
    json.put("layer", origin.layer());
    json.put("route", origin.route().getOrNull());
    json.set("spec", spec());
    return json;
  }

  /** What {@code bifocal route} reads. */
  private ObjectNode spec() {
    ObjectNode spec = JsonNodeFactory.instance.objectNode();
    ObjectNode layers = spec.putObject("layers");
    layers.put("mask", group.mask().images().label());
    group.mask().window().forEach(window -> layers.put("sliding_window", window));
    layers.put("head_size", group.spec().headSize());
    layers.put("dtype", group.spec().dtype().label());
    spec.put("split", origin.split());
    spec.put("lowering", origin.lowering());
    var list = spec.putArray("requests");
    for (int r : requests) {
      ObjectNode request = list.addObject();
      request.put("query_len", batch.queryLen(r));
      request.put("seq_len", batch.seqLen(r));
      var images = request.putArray("images");
      for (int i = 0; i < batch.images().count(r); i++) {
        images.addArray().add(batch.images().first(r, i)).add(batch.images().last(r, i));
      }
    }
    return spec;
  }
}
