package bifocal.cuda.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.KernelSettings.FlashAttentionVersion;
import bifocal.core.backend.ReasonCode;
import bifocal.core.backend.ResolvedVariant;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.Platform;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.select.BackendDeclaration;
import bifocal.core.select.FeatureRow;
import io.vavr.collection.LinkedHashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * {@code FLASH_ATTN}: versions 2, 3 and 4 of FlashAttention.
 *
 * <p>The table gives version 4 devices from 10.0 on. The reference's text is wider, and so is what
 * this class declares as the reference: version 4 also runs on 9.x, for head size 512 and where a
 * model's policy promotes all layers.
 */
public final class FlashAttention {
  /** Its name. */
  public static final BackendName NAME = BackendName.of("FLASH_ATTN");

  private static final int PAGE_OF_HEAD_256 = 128;
  private static final int PAGE_ON_XPU = 64;

  private static final FeatureSet EVERY_VERSION =
      Features.DECODER
          .withKvCacheDtypes(KvCacheDtype.AUTO, KvCacheDtype.FLOAT16, KvCacheDtype.BFLOAT16)
          .withBlockSizes(BlockSizes.multiplesOf(16))
          .withTypes(AttentionType.values())
          .withFeatures(
              Feature.NON_CAUSAL,
              Feature.SLIDING_WINDOW,
              Feature.DCP,
              Feature.BATCH_INVARIANCE,
              Feature.KV_CONNECTOR,
              Feature.ADAPTIVE_VERIFICATION,
              Feature.SOFTCAP,
              Feature.CHUNKED_LOCAL,
              Feature.LSE);

  private static final FeatureSet FA2 =
      Features.plus(EVERY_VERSION, Feature.ALIBI)
          .withDevices(DeviceSupport.cuda(DeviceSupport.Range.from(8, 0)));

  private static final FeatureSet FA3 =
      Features.plus(EVERY_VERSION, Feature.SINK, Feature.PER_HEAD_QUANT_SCALES, Feature.KV_SCALES)
          .withKvCacheDtypes(
              KvCacheDtype.AUTO,
              KvCacheDtype.FLOAT16,
              KvCacheDtype.BFLOAT16,
              KvCacheDtype.FP8,
              KvCacheDtype.FP8_E4M3)
          .withDevices(DeviceSupport.cuda(DeviceSupport.Range.majors(9, 9)));

  private static final FeatureSet FA4 =
      FA3.withDevices(DeviceSupport.cuda(DeviceSupport.Range.from(10, 0)));

  static final Seq<FeatureRow> ROWS =
      Vector.of(
          Features.standard(NAME, "FA2", FA2),
          Features.standard(NAME, "FA3", FA3),
          Features.standard(NAME, "FA4", FA4));

  private static final HeadSizes TO_256 = HeadSizes.multiplesOf(8, 8, 256);
  private static final HeadSizes TO_512 = HeadSizes.multiplesOf(8, 8, 512);

  /** Version 4 applies image masks, which no table says. */
  private static final FeatureSet IMAGES =
      FeatureSet.NONE
          .withImageMasks(ImageMask.OVERRIDE, ImageMask.CLAMP_PAST)
          .withFeatures(Feature.RSWA);

  private static final FeatureSet ON_XPU =
      Features.plus(FA2, Feature.SINK, Feature.KV_SCALES)
          .withKvCacheDtypes(
              KvCacheDtype.AUTO,
              KvCacheDtype.FLOAT16,
              KvCacheDtype.BFLOAT16,
              KvCacheDtype.FP8,
              KvCacheDtype.FP8_E4M3)
          .withHeadSizes(TO_256)
          .withDevices(DeviceSupport.on(Platform.XPU));

  private static final Capabilities SERVES_FA2 = Capabilities.of(FA2.withHeadSizes(TO_256));
  private static final Capabilities SERVES_FA2_WHERE_FA4_IS =
      new Capabilities(FA2.withHeadSizes(TO_256), IMAGES);
  private static final Capabilities SERVES_FA3 =
      new Capabilities(FA3.withHeadSizes(TO_256), IMAGES);
  private static final Capabilities SERVES_FA4_ON_9 =
      new Capabilities(
          FA4.withHeadSizes(TO_512)
              .withDevices(DeviceSupport.cuda(DeviceSupport.Range.majors(9, 9))),
          IMAGES);
  private static final Capabilities SERVES_FA4 =
      new Capabilities(FA4.withHeadSizes(TO_512), IMAGES);
  private static final Capabilities SERVES_HEAD_256 =
      new Capabilities(
          FA4.withHeadSizes(TO_512).withBlockSizes(BlockSizes.exactly(PAGE_OF_HEAD_256)), IMAGES);
  private static final Capabilities SERVES_FA3_ALONE = Capabilities.of(SERVES_FA3.reference());
  private static final Capabilities SERVES_XPU = new Capabilities(FeatureSet.NONE, ON_XPU);

  /** What each version can do, for those who run its kernels under another name. */
  static final Seq<Capabilities> VERSIONS =
      Vector.of(
          SERVES_FA2,
          SERVES_FA2_WHERE_FA4_IS,
          SERVES_FA3,
          SERVES_FA3_ALONE,
          SERVES_FA4_ON_9,
          SERVES_FA4,
          SERVES_HEAD_256,
          SERVES_XPU);

  private static final Capabilities SOME_VERSION =
      new Capabilities(
          FA2.union(FA3).union(FA4),
          IMAGES.union(
              FeatureSet.NONE.withDevices(
                  new DeviceSupport(
                      LinkedHashSet.of(Platform.CUDA, Platform.XPU),
                      Vector.of(DeviceSupport.Range.from(8, 0))))));

  /** What is declared of it. */
  public static final BackendDeclaration DECLARATION =
      BackendDeclaration.of(NAME, ROWS, SOME_VERSION, FlashAttention::variant)
          .but(FlashAttention::sinksNeedHopper)
          .but(FlashAttention::quantizedCacheNeedsItsVersion)
          .but(FlashAttention::imagesNeedVersion4);

  private FlashAttention() {}

  private static ResolvedVariant variant(AttentionRequest request) {
    FlashAttentionVersions.Resolution resolution = FlashAttentionVersions.of(request);
    ResolvedVariant variant =
        ResolvedVariant.of(
                resolution.version() == 0 ? "" : "FA" + resolution.version(),
                capabilities(request, resolution.version()),
                graphSupport(request))
            .noting(resolution.notes());
    if (FlashAttentionVersions.isHead256Kernel(request, resolution.version())) {
      variant = variant.preferringBlocksOf(PAGE_OF_HEAD_256);
    } else if (request.device().platform() == Platform.XPU) {
      variant = variant.preferringBlocksOf(PAGE_ON_XPU);
    }
    return refusal(request, resolution).map(variant::refusing).getOrElse(variant);
  }

  private static Capabilities capabilities(AttentionRequest request, int version) {
    if (request.device().platform() == Platform.XPU) {
      return SERVES_XPU;
    }
    return switch (version) {
      case 3 ->
          FlashAttentionVersions.hasVersion4(request.device()) ? SERVES_FA3 : SERVES_FA3_ALONE;
      case 4 ->
          FlashAttentionVersions.isHead256Kernel(request, version)
              ? SERVES_HEAD_256
              : Sm.major(request.device()) == 9 ? SERVES_FA4_ON_9 : SERVES_FA4;
      default ->
          FlashAttentionVersions.hasVersion4(request.device())
              ? SERVES_FA2_WHERE_FA4_IS
              : SERVES_FA2;
    };
  }

  /** The whole process's version decides, before the layer's rules. */
  private static GraphSupport graphSupport(AttentionRequest request) {
    return FlashAttentionVersions.started(request) == 3 && Sm.major(request.device()) == 9
        ? GraphSupport.ALWAYS
        : GraphSupport.UNIFORM_BATCH;
  }

  /** A version that the user wants serves the layer, or the layer is refused. */
  private static Option<InvalidReason> refusal(
      AttentionRequest request, FlashAttentionVersions.Resolution resolution) {
    boolean byUser =
        request.deployment().kernels().flashAttention().exists(FlashAttentionVersion::byUser);
    boolean refused = resolution.version() == 0 || (byUser && resolution.changed());
    return Option.when(
        refused,
        () ->
            new InvalidReason(
                ReasonCode.COMBINATION,
                (byUser
                        ? "flash_attn_version "
                            + resolution.started()
                            + " cannot serve this layer: "
                        : "no FlashAttention version serves this layer: ")
                    + resolution.notes().mkString(" "),
                "FA" + resolution.started(),
                byUser
                    ? "leave flash_attn_version open"
                        + (resolution.version() == 0 ? "" : ", or say " + resolution.version())
                    : "another backend"));
  }

  private static Option<InvalidReason> sinksNeedHopper(
      AttentionRequest request, ResolvedVariant variant) {
    return Features.when(
        request.layer().sinks()
            && request.device().platform() == Platform.CUDA
            && !Sm.atLeast(request.device(), 9, 0),
        ReasonCode.COMBINATION,
        "sink not supported on compute capability < 9.0",
        request.device().label(),
        "needs 9.0 or more");
  }

  private static Option<InvalidReason> quantizedCacheNeedsItsVersion(
      AttentionRequest request, ResolvedVariant variant) {
    int major = Sm.major(request.device());
    boolean served =
        request.device().platform() == Platform.XPU
            || (major == 9 && variant.version().equals("FA3"))
            || (major == 10 && variant.version().equals("FA4"));
    return Features.when(
        request.layer().type().usesKvCache()
            && FlashAttentionVersions.quantized(request.layer().kvCacheDtype())
            && !served,
        ReasonCode.COMBINATION,
        "FP8 KV cache requires FA3 on SM90 or FA4 on SM100",
        variant.version(),
        "FA3 on 9.x or FA4 on 10.x");
  }

  private static Option<InvalidReason> imagesNeedVersion4(
      AttentionRequest request, ResolvedVariant variant) {
    return Features.when(
        request.mmPrefix() && !variant.version().equals("FA4"),
        ReasonCode.COMBINATION,
        "mm_prefix (PrefixLM bidirectional attention) requires FlashAttention v4, which does not"
            + " resolve for this head_size",
        variant.version(),
        "a head size that FlashAttention 4 serves here");
  }

  /** What the composite with Triton asks of its causal child. */
  static Option<InvalidReason> causalRouteNeedsVersion4(AttentionRequest asked) {
    boolean takes3 = asked.deployment().kernels().compositeTakesFlashAttention3();
    int version = FlashAttentionVersions.of(asked, asked.blockSize()).version();
    return Features.when(
        version != 4 && !(takes3 && version == 3),
        ReasonCode.COMBINATION,
        takes3
            ? "causal route requires FlashAttention v3 or v4"
            : "causal route requires FlashAttention v4",
        "FA" + version,
        "head size 512, or flash_attn_version=4");
  }
}
