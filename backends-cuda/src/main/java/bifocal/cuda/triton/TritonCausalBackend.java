package bifocal.cuda.triton;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.Execution;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvLayouts;
import bifocal.core.device.Platform;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionType;
import bifocal.core.tensor.DType;
import bifocal.cuda.select.TritonAttention;
import io.vavr.control.Option;

/**
 * {@code TRITON_ATTN_CAUSAL}: the same kernels compiled for windows, causal or not. It is faster
 * and knows no images; as the fast child of a pair it computes them as runs.
 */
public final class TritonCausalBackend extends TritonBackend {
  /** Its name. */
  public static final BackendName NAME = BackendName.of("TRITON_ATTN_CAUSAL");

  private static final Capabilities CAPABILITIES =
      new Capabilities(
          FeatureSet.NONE,
          FeatureSet.NONE
              .withDtypes(DType.BF16, DType.FP16, DType.FP32)
              .withKvCacheDtypes(
                  KvCacheDtype.AUTO,
                  KvCacheDtype.FLOAT32,
                  KvCacheDtype.FLOAT16,
                  KvCacheDtype.BFLOAT16,
                  KvCacheDtype.FP8,
                  KvCacheDtype.FP8_E4M3,
                  KvCacheDtype.FP8_E5M2,
                  KvCacheDtype.INT8_PER_TOKEN_HEAD,
                  KvCacheDtype.FP8_PER_TOKEN_HEAD)
              .withBlockSizes(BlockSizes.multiplesOf(16))
              .withHeadSizes(HeadSizes.multiplesOf(16, 32, 512))
              .withTypes(AttentionType.DECODER, AttentionType.ENCODER_DECODER)
              .withFeatures(
                  Feature.SINK,
                  Feature.NON_CAUSAL,
                  Feature.NON_CAUSAL_LEFT_WINDOW,
                  Feature.RIGHT_WINDOW,
                  Feature.SLIDING_WINDOW,
                  Feature.SOFTCAP,
                  Feature.ALIBI,
                  Feature.KV_SCALES,
                  Feature.KV_CONNECTOR,
                  Feature.LSE,
                  Feature.INDIRECT_REQUESTS)
              .withKvLayouts(KvLayouts.NHD, KvLayouts.HND)
              .withDevices(DeviceSupport.on(Platform.CUDA)));

  /** A backend over the kernels of a host, which it looks for when they are first needed. */
  public TritonCausalBackend(TritonHost host) {
    super(host, TritonVariant.CAUSAL);
  }

  @Override
  public BackendName name() {
    return NAME;
  }

  @Override
  public Capabilities capabilities() {
    return CAPABILITIES;
  }

  @Override
  public Capabilities capabilities(AttentionRequest request) {
    return onThisHost(CAPABILITIES, request);
  }

  @Override
  public Option<InvalidReason> checkCombination(AttentionRequest request) {
    return TritonAttention.DECLARATION.objection(request);
  }

  @Override
  public Execution execution() {
    return TritonAttnBackend.WITH_PACK;
  }

  @Override
  Option<InvalidReason> objection(AttentionLayerSpec.Dense layer) {
    return Option.when(
        layer.mask().seesImages() || layer.mask().chunk().isDefined(),
        () ->
            new InvalidReason(
                ReasonCode.MM_PREFIX,
                "images and chunks are not read by kernels for windows",
                layer.mask().toString(),
                "windows"));
  }
}
