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
import bifocal.core.cache.KvLayouts;
import bifocal.core.graph.GraphSupport;
import bifocal.core.select.BackendDeclaration;
import bifocal.core.select.FeatureRow;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * {@code FLASHINFER}: its own kernels, XQA on 9.0, and trtllm-gen on 10.x.
 *
 * <p>The reference's text lets a setting switch the latter two off, so native kernels on 10.x
 * belong to the reference although their row ends at 9.x. Devices of 11.x and 12.x are beyond it.
 */
public final class FlashInfer {
  /** Its name. */
  public static final BackendName NAME = BackendName.of("FLASHINFER");

  private static final FeatureSet EVERY_KERNEL =
      Features.DECODER
          .withKvCacheDtypes(
              KvCacheDtype.AUTO,
              KvCacheDtype.FLOAT16,
              KvCacheDtype.BFLOAT16,
              KvCacheDtype.FP8,
              KvCacheDtype.FP8_E4M3,
              KvCacheDtype.FP8_E5M2,
              KvCacheDtype.NVFP4_4OVER6)
          .withBlockSizes(BlockSizes.exactly(16, 32, 64, 128, 256, 512, 1024))
          .withHeadSizes(HeadSizes.exactly(64, 128, 256, 512))
          .withFeatures(
              Feature.DCP,
              Feature.SLIDING_WINDOW,
              Feature.KV_CONNECTOR,
              Feature.KV_SCALES,
              Feature.CHUNKED_LOCAL,
              Feature.LSE);

  private static final FeatureSet NATIVE =
      Features.plus(EVERY_KERNEL, Feature.NON_CAUSAL, Feature.SOFTCAP)
          .withDevices(DeviceSupport.cuda(DeviceSupport.Range.majors(8, 9)));
  private static final FeatureSet XQA =
      EVERY_KERNEL.withDevices(DeviceSupport.cuda(DeviceSupport.Range.exactly(9, 0)));
  private static final FeatureSet TRTLLM_GEN =
      Features.plus(EVERY_KERNEL, Feature.SINK, Feature.NON_CAUSAL)
          .withKvCacheDtypes(
              KvCacheDtype.AUTO,
              KvCacheDtype.FLOAT16,
              KvCacheDtype.BFLOAT16,
              KvCacheDtype.FP8,
              KvCacheDtype.FP8_E4M3,
              KvCacheDtype.FP8_E5M2,
              KvCacheDtype.NVFP4,
              KvCacheDtype.NVFP4_4OVER6)
          .withDevices(DeviceSupport.cuda(DeviceSupport.Range.majors(10, 10)));

  static final Seq<FeatureRow> ROWS =
      Vector.of(
          Features.standard(NAME, FlashInferKernels.NATIVE, NATIVE),
          Features.standard(NAME, FlashInferKernels.XQA, XQA),
          Features.standard(NAME, FlashInferKernels.TRTLLM_GEN, TRTLLM_GEN));

  /** Larger pages are for grouped queries and the kernels of TensorRT-LLM. */
  private static final BlockSizes SMALL_PAGES = BlockSizes.exactly(16, 32, 64);

  /** From 10.0 to 12.1, beyond the rows; 7.5 stays out. */
  private static final DeviceSupport NEWER =
      DeviceSupport.cuda(
          new DeviceSupport.Range(
              DeviceSupport.Range.exactly(10, 0).least(),
              DeviceSupport.Range.exactly(12, 1).most()));

  private static final FeatureSet ONLY_NATIVE =
      Features.minus(NATIVE, KvCacheDtype.NVFP4_4OVER6).withBlockSizes(SMALL_PAGES);
  private static final Capabilities SERVES_NATIVE =
      new Capabilities(ONLY_NATIVE, FeatureSet.NONE.withDevices(NEWER));
  private static final Capabilities SERVES_NATIVE_ON_10 =
      Capabilities.of(onlyHeadFirst(ONLY_NATIVE.withDevices(TRTLLM_GEN.devices())));
  private static final FeatureSet ONLY_XQA =
      Features.minus(XQA, KvCacheDtype.NVFP4_4OVER6).withBlockSizes(SMALL_PAGES);
  private static final Capabilities SERVES_XQA =
      new Capabilities(ONLY_XQA, FeatureSet.NONE.withDevices(NEWER));
  private static final Capabilities SERVES_XQA_ON_12 =
      new Capabilities(
          ONLY_XQA,
          FeatureSet.NONE.withDevices(NEWER).withFeatures(Feature.SINK, Feature.NON_CAUSAL));
  private static final Capabilities SERVES_TRTLLM_GEN = Capabilities.of(onlyHeadFirst(TRTLLM_GEN));
  private static final Capabilities SERVES_TRTLLM_GEN_WITHOUT_GROUPS =
      Capabilities.of(onlyHeadFirst(TRTLLM_GEN.withBlockSizes(SMALL_PAGES)));
  private static final Capabilities SOME_KERNEL =
      new Capabilities(NATIVE.union(XQA).union(TRTLLM_GEN), FeatureSet.NONE.withDevices(NEWER));

  /** What is declared of it, but for what this project's own modules can do in spite of it. */
  public static final BackendDeclaration WITH_WINDOWS =
      BackendDeclaration.of(NAME, ROWS, SOME_KERNEL, FlashInfer::variant)
          .but(FlashInfer::sinksNeedTheirKernel)
          .but(FlashInfer::nonCausalIsNotShared);

  /** What is declared of it. */
  public static final BackendDeclaration DECLARATION =
      BackendDeclaration.of(NAME, ROWS, SOME_KERNEL, FlashInfer::variant)
          .but(FlashInfer::windowsCrashOnHopper)
          .but(FlashInfer::sinksNeedTheirKernel)
          .but(FlashInfer::nonCausalIsNotShared);

  private FlashInfer() {}

  private static FeatureSet onlyHeadFirst(FeatureSet features) {
    return features.withKvLayouts(KvLayouts.HND, PackedKvLayouts.NVFP4);
  }

  private static ResolvedVariant variant(AttentionRequest request) {
    FlashInferKernels.Resolution resolution = FlashInferKernels.decode(request);
    return ResolvedVariant.of(
            resolution.kernel(), capabilities(request, resolution.kernel()), graphSupport(request))
        .noting(resolution.note().toVector());
  }

  private static Capabilities capabilities(AttentionRequest request, String kernel) {
    int major = Sm.major(request.device());
    return switch (kernel) {
      case FlashInferKernels.TRTLLM_GEN ->
          request.layer().groupSize() > 1 ? SERVES_TRTLLM_GEN : SERVES_TRTLLM_GEN_WITHOUT_GROUPS;
      case FlashInferKernels.XQA -> major == 12 ? SERVES_XQA_ON_12 : SERVES_XQA;
      default -> major == 10 ? SERVES_NATIVE_ON_10 : SERVES_NATIVE;
    };
  }

  private static GraphSupport graphSupport(AttentionRequest request) {
    int major = Sm.major(request.device());
    boolean shared = request.deployment().decodeContextParallel() > 1;
    if (major == 9 || (major == 12 && shared)) {
      return GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE;
    }
    boolean trtllm = FlashInferKernels.usable(request, FlashInferKernels.Phase.DECODE);
    return trtllm && (major == 12 || request.layer().mask().causal())
        ? GraphSupport.UNIFORM_BATCH
        : GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE;
  }

  private static Option<InvalidReason> windowsCrashOnHopper(
      AttentionRequest request, ResolvedVariant variant) {
    return Features.when(
        Sm.major(request.device()) == 9 && request.layer().mask().window().isDefined(),
        ReasonCode.COMBINATION,
        "FlashInfer backend on SM90 currently crashes with sliding-window attention layers. Use the"
            + " default attention backend.",
        request.device().label(),
        "for layers without a window here");
  }

  private static Option<InvalidReason> sinksNeedTheirKernel(
      AttentionRequest request, ResolvedVariant variant) {
    return Features.when(
        request.layer().sinks() && !FlashInferKernels.sinks(request),
        ReasonCode.COMBINATION,
        "FlashInfer backend currently does not support attention sinks, please use trtllm on"
            + " blackwell or flash attention on earlier GPUs.",
        variant.version(),
        "sinks need trtllm-gen, trtllm-gen needs 10.x");
  }

  private static Option<InvalidReason> nonCausalIsNotShared(
      AttentionRequest request, ResolvedVariant variant) {
    return Features.when(
        !request.layer().mask().causal() && request.deployment().decodeContextParallel() > 1,
        ReasonCode.COMBINATION,
        "FlashInfer non-causal prefill is not supported with DCP yet.",
        "non-causal, DCP " + request.deployment().decodeContextParallel(),
        "one of the two");
  }
}
