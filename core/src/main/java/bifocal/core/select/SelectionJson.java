package bifocal.core.select;

import bifocal.core.cache.BlockSizes;
import bifocal.core.device.DeviceProfile;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.vavr.collection.Seq;
import io.vavr.control.Option;

/** Reports as JSON, keys in a fixed order; what does not apply is null. */
public final class SelectionJson {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private SelectionJson() {}

  /** The JSON of a report. */
  public static ObjectNode of(SelectionReport report) {
    ObjectNode json = JSON.objectNode();
    json.put("backend", report.backend().value());
    json.put("source", report.source().label());
    json.put("platform", report.device().platform().label());
    json.put("capability", capability(report.device()).getOrNull());
    json.put("simulated", report.device().simulated());
    json.put("extension", report.extension());
    json.put("flash_attn_version", report.flashAttentionVersion().getOrNull());
    json.put("flashinfer_kernel", report.flashInferKernel().getOrNull());
    json.put("mla_prefill_backend", report.latentPrefill().getOrNull());
    json.put("kv_cache_dtype", report.kvCacheDtype().label());
    json.put("kv_layout", report.contract().map(c -> c.layout().name()).getOrNull());
    json.set("kernel_block_sizes", sizes(report.kernelBlockSizes()));
    json.put("block_size", report.blockSize().getOrNull());
    json.put("graph_support", report.graphSupport().name());
    json.set("children", report.children().isEmpty() ? JSON.nullNode() : texts(report.children()));
    json.set("candidates", candidates(report.candidates()));
    return json;
  }

  /** The JSON of candidates. */
  public static ArrayNode candidates(Seq<Candidate> candidates) {
    ArrayNode array = JSON.arrayNode();
    candidates.forEach(
        candidate -> {
          ObjectNode json = array.addObject();
          json.put("backend", candidate.backend().value());
          json.put("priority", candidate.priority().getOrNull());
          json.put("valid", candidate.valid());
          json.set("reasons", texts(candidate.reasons()));
          json.put("hint", candidate.hint().getOrNull());
        });
    return array;
  }

  private static Option<String> capability(DeviceProfile device) {
    return switch (device) {
      case DeviceProfile.Cuda cuda -> Option.some(cuda.capability().toString());
      case DeviceProfile.Cpu cpu -> Option.none();
      case DeviceProfile.Rocm rocm -> Option.none();
      case DeviceProfile.Xpu xpu -> Option.none();
    };
  }

  private static ArrayNode sizes(BlockSizes sizes) {
    return texts(sizes.sizes());
  }

  private static ArrayNode texts(Seq<?> values) {
    ArrayNode array = JSON.arrayNode();
    values.forEach(value -> array.add(value.toString()));
    return array;
  }
}
