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
import bifocal.core.device.ComputeCapability;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.select.BackendDeclaration;
import bifocal.core.tensor.DType;
import io.vavr.control.Option;

/** {@code B12X}: causal decoder attention on 12.0 and 12.1, chosen by name alone. */
final class B12x {
  static final BackendName NAME = BackendName.of("B12X");

  private static final int PREFERRED_PAGE = 128;
  private static final double SCALE_TOLERANCE = 1e-5;

  private static final FeatureSet ROW =
      Features.DECODER
          .withDtypes(DType.BF16)
          .withHeadSizes(HeadSizes.exactly(64, 128, 192, 256))
          .withFeatures(
              Feature.SINK,
              Feature.SLIDING_WINDOW,
              Feature.KV_CONNECTOR,
              Feature.ADAPTIVE_VERIFICATION)
          .withKvLayouts(KvLayouts.HND)
          .withDevices(DeviceSupport.cuda());

  private static final Capabilities SERVES =
      new Capabilities(
          ROW.withBlockSizes(BlockSizes.exactly(64, PREFERRED_PAGE)),
          FeatureSet.NONE
              .withKvCacheDtypes(KvCacheDtype.BFLOAT16, KvCacheDtype.FP8, KvCacheDtype.FP8_E4M3)
              .withFeatures(Feature.KV_SCALES));

  static final BackendDeclaration DECLARATION =
      BackendDeclaration.of(Features.standard(NAME, ROW), SERVES, GraphSupport.UNIFORM_BATCH)
          .choosing(
              request ->
                  ResolvedVariant.of("", SERVES, GraphSupport.UNIFORM_BATCH)
                      .preferringBlocksOf(PREFERRED_PAGE))
          .but(B12x::pageIsItsOwn)
          .but(B12x::isInstalled)
          .but(B12x::runsOnItsDevices)
          .but(B12x::scaleIsUsual);

  private B12x() {}

  /** A page of several blocks is no page of this backend. */
  private static Option<InvalidReason> pageIsItsOwn(
      AttentionRequest request, ResolvedVariant variant) {
    return Features.when(
        request.blockSize().exists(size -> size != 64 && size != PREFERRED_PAGE),
        ReasonCode.BLOCK_SIZE,
        "block_size not supported",
        request.blockSize().map(String::valueOf).getOrElse(""),
        "64, 128");
  }

  private static Option<InvalidReason> isInstalled(
      AttentionRequest request, ResolvedVariant variant) {
    return Features.when(
        !KernelPackages.B12X.on(request.device()),
        ReasonCode.COMBINATION,
        "Install the b12x backend with `pip install vllm[b12x]`",
        "no b12x package",
        "the b12x package");
  }

  private static Option<InvalidReason> runsOnItsDevices(
      AttentionRequest request, ResolvedVariant variant) {
    boolean served =
        Sm.of(request.device())
            .exists(
                c ->
                    c.equals(new ComputeCapability(12, 0))
                        || c.equals(new ComputeCapability(12, 1)));
    return Features.when(
        !served,
        ReasonCode.COMBINATION,
        "b12x paged attention is not supported on the current device",
        request.device().label(),
        "needs 12.0 or 12.1");
  }

  private static Option<InvalidReason> scaleIsUsual(
      AttentionRequest request, ResolvedVariant variant) {
    if (!(request.layer() instanceof AttentionLayerSpec.Dense dense)) {
      return Option.none();
    }
    double usual = Math.pow(dense.headSize(), -0.5);
    return Features.when(
        Math.abs(dense.scale() - usual) > SCALE_TOLERANCE * usual,
        ReasonCode.COMBINATION,
        "b12x scales logits by head_size^-0.5 only",
        dense.scale(),
        String.valueOf(usual));
  }
}
