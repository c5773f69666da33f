package bifocal.cuda.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.backend.ResolvedVariant;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.Platform;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.select.BackendDeclaration;
import bifocal.core.tensor.DType;
import io.vavr.control.Option;

/**
 * {@code TRITON_ATTN}: the general backend of GPUs. Heads below 32 are too narrow for its tiles.
 */
public final class TritonAttention {
  /** Its name. */
  public static final BackendName NAME = BackendName.of("TRITON_ATTN");

  private static final FeatureSet ROW =
      Features.DECODER
          .withDtypes(DType.FP16, DType.BF16, DType.FP32)
          .withKvCacheDtypes(
              KvCacheDtype.AUTO,
              KvCacheDtype.FLOAT16,
              KvCacheDtype.BFLOAT16,
              KvCacheDtype.FP8,
              KvCacheDtype.FP8_E4M3,
              KvCacheDtype.FP8_E5M2,
              KvCacheDtype.INT4_PER_TOKEN_HEAD,
              KvCacheDtype.INT8_PER_TOKEN_HEAD,
              KvCacheDtype.FP8_PER_TOKEN_HEAD)
          .withBlockSizes(BlockSizes.multiplesOf(16))
          .withTypes(AttentionType.values())
          .withImageMasks(ImageMask.OVERRIDE, ImageMask.CLAMP_PAST)
          .withFeatures(
              Feature.SINK,
              Feature.NON_CAUSAL,
              Feature.SLIDING_WINDOW,
              Feature.CHUNKED_LOCAL,
              Feature.BATCH_INVARIANCE,
              Feature.SOFTCAP,
              Feature.ALIBI,
              Feature.ALIBI_SQRT,
              Feature.RSWA,
              Feature.KV_SCALES,
              Feature.KV_CONNECTOR,
              Feature.ADAPTIVE_VERIFICATION)
          .withKvLayouts(
              Features.DECODER.kvLayouts().get(0),
              Features.DECODER.kvLayouts().get(1),
              PackedKvLayouts.INT4_PER_TOKEN_HEAD)
          .withDevices(DeviceSupport.on(Platform.CUDA, Platform.ROCM, Platform.XPU));

  /** What is declared of it. */
  public static final BackendDeclaration DECLARATION =
      BackendDeclaration.of(
              Features.standard(NAME, ROW),
              Capabilities.of(ROW.withHeadSizes(HeadSizes.multiplesOf(1, 32, Integer.MAX_VALUE))),
              GraphSupport.ALWAYS)
          .but(TritonAttention::bfloat16NeedsAmpere)
          .but(TritonAttention::fp8NeedsAda);

  private TritonAttention() {}

  private static Option<InvalidReason> bfloat16NeedsAmpere(
      AttentionRequest request, ResolvedVariant variant) {
    boolean bfloat16 =
        request.layer().dtype() == DType.BF16
            || request.layer().kvCacheDtype() == KvCacheDtype.BFLOAT16;
    return Features.when(
        bfloat16 && onCudaBefore(request, 8, 0),
        ReasonCode.COMBINATION,
        "bfloat16 needs compute capability 8.0",
        request.device().label(),
        "needs 8.0 or more, or fp16");
  }

  private static Option<InvalidReason> fp8NeedsAda(
      AttentionRequest request, ResolvedVariant variant) {
    KvCacheDtype kv = request.layer().kvCacheDtype();
    return Features.when(
        request.layer().type().usesKvCache()
            && kv.label().startsWith("fp8")
            && onCudaBefore(request, 8, 9),
        ReasonCode.COMBINATION,
        "FP8 KV cache needs compute capability 8.9",
        request.device().label() + ", " + kv,
        "needs 8.9 or more");
  }

  private static boolean onCudaBefore(AttentionRequest request, int major, int minor) {
    return request.device().platform() == Platform.CUDA
        && !Sm.atLeast(request.device(), major, minor);
  }
}
