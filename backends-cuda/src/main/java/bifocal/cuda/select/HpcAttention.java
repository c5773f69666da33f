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
import bifocal.core.select.BackendDeclaration;
import io.vavr.control.Option;

/** {@code HPC_ATTN}: decoder attention on exactly 9.0 that writes its cache inside forward. */
final class HpcAttention {
  static final BackendName NAME = BackendName.of("HPC_ATTN");

  private static final int MOST_SPECULATIVE_TOKENS = 3;

  private static final FeatureSet ROW =
      Features.DECODER
          .withKvCacheDtypes(KvCacheDtype.AUTO, KvCacheDtype.BFLOAT16, KvCacheDtype.FP8_E4M3)
          .withBlockSizes(BlockSizes.exactly(64))
          .withHeadSizes(HeadSizes.exactly(128))
          .withFeatures(
              Feature.KV_CONNECTOR, Feature.ADAPTIVE_VERIFICATION, Feature.KV_WRITE_IN_FORWARD)
          .withKvLayouts(KvLayouts.NHD)
          .withDevices(DeviceSupport.cuda());

  static final BackendDeclaration DECLARATION =
      BackendDeclaration.of(Features.standard(NAME, ROW), GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE)
          .choosing(HpcAttention::variant)
          .but(HpcAttention::runsOnHopper)
          .but(HpcAttention::groupsAreFourOrEight)
          .but(HpcAttention::draftsAreShort);

  private HpcAttention() {}

  private static ResolvedVariant variant(AttentionRequest request) {
    return ResolvedVariant.of(
        "",
        Capabilities.of(ROW),
        request.deployment().speculativeTokens() > 0
            ? GraphSupport.UNIFORM_BATCH
            : GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE);
  }

  private static Option<InvalidReason> runsOnHopper(
      AttentionRequest request, ResolvedVariant variant) {
    return Features.when(
        !Sm.of(request.device()).contains(new ComputeCapability(9, 0)),
        ReasonCode.DEVICE,
        "compute capability not supported",
        request.device().label(),
        "9.0");
  }

  private static Option<InvalidReason> groupsAreFourOrEight(
      AttentionRequest request, ResolvedVariant variant) {
    int group = request.layer().groupSize();
    return Features.when(
        group != 4 && group != 8,
        ReasonCode.COMBINATION,
        "HPC attention only supports head_per_group in {4, 8}, got " + group,
        group,
        "4 or 8 query heads per KV head");
  }

  private static Option<InvalidReason> draftsAreShort(
      AttentionRequest request, ResolvedVariant variant) {
    int drafted = request.deployment().speculativeTokens();
    return Features.when(
        drafted > MOST_SPECULATIVE_TOKENS,
        ReasonCode.COMBINATION,
        "HPC attention verifies at most 3 speculative tokens, got " + drafted,
        drafted,
        "at most 3 speculative tokens");
  }
}
