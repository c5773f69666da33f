package bifocal.core.select;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.InvalidReason;
import io.vavr.collection.Seq;

/** What would have to change for a candidate to be valid. */
final class Hints {
  private static final String CUDA = "cuda ";

  private Hints() {}

  static Seq<String> of(AttentionBackend<?> backend, Seq<InvalidReason> reasons) {
    return reasons.map(reason -> hint(backend, reason)).filter(hint -> !hint.isEmpty()).distinct();
  }

  private static String hint(AttentionBackend<?> backend, InvalidReason reason) {
    String wanted = reason.wanted();
    return switch (reason.code()) {
      case DEVICE -> "needs " + devices(backend, wanted);
      case HEAD_SIZE -> "runs head sizes " + wanted;
      case DTYPE -> "runs " + wanted;
      case KV_CACHE_DTYPE -> "its KV cache is one of " + wanted;
      case BLOCK_SIZE -> "leave the block size open, or choose one of " + wanted;
      case MM_PREFIX ->
          wanted.equals("none")
              ? "for models whose images are causal"
              : "image masks it runs: " + wanted;
      case ATTENTION_TYPE -> "runs " + wanted;
      case MLA, SPARSE -> "for other kinds of layers";
      case SINK -> "for layers without sinks";
      case PER_HEAD_QUANT_SCALES -> "for cache scales per tensor";
      case SLIDING_WINDOW -> "for layers without a window";
      case RSWA -> "for plain windows";
      case NON_CAUSAL -> "for causal layers";
      case NON_CAUSAL_DCP, DCP -> "turn decode context parallelism off";
      case BATCH_INVARIANCE -> "turn batch invariance off";
      case KV_CONNECTOR -> "leave out the KV connector";
      case PCP -> "turn prefill context parallelism off";
      case ADAPTIVE_VERIFICATION -> "turn adaptive verification off";
      case SOFTCAP -> "for layers without a softcap";
      case ALIBI -> "for layers without ALiBi";
      case CHUNKED_LOCAL -> "for layers without chunks";
      case HEAD_SIZE_V -> "for values as wide as keys";
      case KV_SCALES, KV_LAYOUT, LSE, COMBINATION, COMPOSITION, NOT_ON_THIS_HOST -> wanted;
    };
  }

  /** What the resolved variant wants; where that is nothing, all that some variant runs on. */
  private static String devices(AttentionBackend<?> backend, String wanted) {
    return withoutCuda(
        wanted.equals("none") ? backend.capabilities().all().devices().toString() : wanted);
  }

  private static String withoutCuda(String devices) {
    return devices.startsWith(CUDA) ? devices.substring(CUDA.length()) : devices;
  }
}
