package bifocal.core.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Deployment;
import bifocal.core.backend.InvalidReason;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionType;
import io.vavr.collection.Seq;

/** The sentences of the reference, to the letter. */
final class RefusalText {
  private RefusalText() {}

  static String explicit(BackendName backend, Seq<InvalidReason> reasons) {
    return "Selected backend "
        + backend
        + " is not valid for this configuration. Reason: "
        + listed(reasons.map(InvalidReason::text));
  }

  static String listed(Seq<String> texts) {
    return texts.map(RefusalText::quoted).mkString("[", ", ", "]");
  }

  static String automatic(AttentionRequest asked, Seq<Candidate> candidates) {
    return "No valid attention backend found for "
        + asked.device().label()
        + " with "
        + describe(asked)
        + ". Reasons: "
        + candidates.map(RefusalText::reasonsOf).mkString("{", ", ", "}")
        + ".";
  }

  static String precluded(int blockSize, Seq<BackendName> better, BackendName chosen) {
    return "--block-size "
        + blockSize
        + " precluded higher-priority backend(s) "
        + better.mkString(", ")
        + ". Using "
        + chosen
        + " instead, which may result in reduced performance. Consider removing --block-size to"
        + " auto-select the optimal block size.";
  }

  static String incompatiblePair(BackendName decode, BackendName general) {
    return "Decode attention backend "
        + decode
        + " is not KV-cache-layout compatible with the general backend "
        + general
        + "; they cannot share one physical KV cache. Choose a decode backend with a matching KV"
        + " layout.";
  }

  private static String reasonsOf(Candidate candidate) {
    return candidate.backend()
        + ": "
        + candidate.reasons().map(InvalidReason::text).mkString("[", ", ", "]");
  }

  private static String quoted(String text) {
    char quote = text.contains("'") && !text.contains("\"") ? '"' : '\'';
    return quote + (quote == '\'' ? text.replace("'", "\\'") : text) + quote;
  }

  private static String describe(AttentionRequest asked) {
    AttentionLayerSpec layer = asked.layer();
    Deployment deployment = asked.deployment();
    return "AttentionSelectorConfig(head_size="
        + layer.headSize()
        + ", dtype="
        + layer.dtype()
        + ", kv_cache_dtype="
        + layer.kvCacheDtype()
        + ", block_size="
        + asked.blockSize().map(String::valueOf).getOrElse("None")
        + ", use_mla="
        + flag(layer.cachesLatents())
        + ", has_sink="
        + flag(layer.sinks())
        + ", use_sparse="
        + flag(layer.choosesKeys())
        + ", use_mm_prefix="
        + flag(asked.mmPrefix())
        + ", use_per_head_quant_scales="
        + flag(deployment.perHeadQuantScales())
        + ", attn_type="
        + layer.type().label()
        + ", has_sliding_window="
        + flag(layer.mask().window().isDefined())
        + ", use_non_causal="
        + flag(!layer.mask().causal() && layer.type() == AttentionType.DECODER)
        + ", use_batch_invariant="
        + flag(deployment.batchInvariant())
        + ", use_kv_connector="
        + flag(deployment.kvConnector())
        + ", use_adaptive_verification="
        + flag(deployment.adaptiveVerification())
        + ", use_pcp="
        + flag(deployment.prefillContextParallel() > 1)
        + ", use_dcp="
        + flag(deployment.decodeContextParallel() > 1)
        + ")";
  }

  private static String flag(boolean value) {
    return value ? "True" : "False";
  }
}
