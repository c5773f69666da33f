package bifocal.cuda.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.DeviceProfile;
import bifocal.core.layer.AttentionLayerSpec;
import io.vavr.control.Option;

/** Which of FlashInfer's kernels serves a layer. */
final class FlashInferKernels {
  static final String NATIVE = "Native";
  static final String XQA = "XQA";
  static final String TRTLLM_GEN = "trtllm-gen";

  /** Tokens up to which decode uses the kernels of TensorRT-LLM unasked. */
  private static final int FEW_TOKENS = 256;

  private FlashInferKernels() {}

  /**
   * The outcome.
   *
   * @param kernel the decode kernel
   * @param note why it is not the device's own one
   */
  record Resolution(String kernel, Option<String> note) {}

  /** A phase of serving. */
  enum Phase {
    PREFILL,
    DECODE
  }

  /** The decode kernel, which is settled once for a layer. */
  static Resolution decode(AttentionRequest request) {
    AttentionLayerSpec layer = request.layer();
    int major = Sm.major(request.device());
    boolean xqa = major == 9 || major == 12;
    if (!usable(request, Phase.DECODE)) {
      return new Resolution(NATIVE, Option.none());
    }
    if (xqa && request.deployment().decodeContextParallel() > 1) {
      return new Resolution(
          NATIVE, Option.some("XQA does not run decode context parallelism: FlashInfer native"));
    }
    if (!layer.mask().causal() && major != 12) {
      return new Resolution(NATIVE, Option.some("non-causal layers decode with FlashInfer native"));
    }
    return new Resolution(xqa ? XQA : TRTLLM_GEN, Option.none());
  }

  /** Whether the kernels of TensorRT-LLM run on the request's device in some phase. */
  static boolean supported(AttentionRequest request, Phase phase) {
    DeviceProfile device = request.device();
    if (request.deployment().batchInvariant() || !KernelPackages.FLASHINFER_CUBINS.on(device)) {
      return false;
    }
    int major = Sm.major(device);
    return (major == 9 || major == 12) ? phase == Phase.DECODE : major == 10;
  }

  /** Whether they may run for a layer. */
  static boolean usable(AttentionRequest request, Phase phase) {
    return request.deployment().kernels().trtllmAttention().getOrElse(true)
        && supported(request, phase)
        && request.layer().numHeads() % request.layer().numKvHeads() == 0;
  }

  /**
   * Whether they run a batch, first rule first.
   *
   * @param tokens query tokens of the batch
   * @param quantizedQuery whether queries are fp8
   */
  static boolean runs(AttentionRequest request, Phase phase, int tokens, boolean quantizedQuery) {
    Option<Boolean> forced = request.deployment().kernels().trtllmAttention();
    AttentionLayerSpec layer = request.layer();
    KvCacheDtype kv = layer.kvCacheDtype();
    if (forced.contains(false)
        || request.deployment().decodeContextParallel() > 1
        || !supported(request, phase)
        || layer.numHeads() % layer.numKvHeads() != 0) {
      return false;
    }
    boolean verifies = request.deployment().speculativeTokens() > 0 && phase == Phase.DECODE;
    if (verifies || quantizedQuery || layer.sinks() || forced.isDefined()) {
      return true;
    }
    if (phase == Phase.PREFILL) {
      return kv == KvCacheDtype.AUTO;
    }
    int major = Sm.major(request.device());
    boolean quantizedOnXqa = (major == 9 || major == 12) && kv.label().startsWith("fp8");
    return quantizedOnXqa || (tokens <= FEW_TOKENS && kv == KvCacheDtype.AUTO);
  }

  /** Whether sinks are served: by trtllm-gen in both phases, on 12.x by XQA in decode. */
  static boolean sinks(AttentionRequest request) {
    if (request.deployment().kernels().trtllmAttention().contains(false)) {
      return false;
    }
    int major = Sm.major(request.device());
    return switch (major) {
      case 12 -> supported(request, Phase.DECODE);
      case 10 -> supported(request, Phase.PREFILL) && supported(request, Phase.DECODE);
      default -> false;
    };
  }
}
