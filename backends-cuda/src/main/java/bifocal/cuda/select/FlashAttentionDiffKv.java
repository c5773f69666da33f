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
import bifocal.core.select.BackendDeclaration;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * {@code FLASH_ATTN_DIFFKV}: FlashAttention 3 or 4 over keys and values of different widths. Its
 * row understates it: it inherits from {@code FLASH_ATTN}, which counts as an extension.
 */
final class FlashAttentionDiffKv {
  static final BackendName NAME = BackendName.of("FLASH_ATTN_DIFFKV");

  private static final FeatureSet ROW =
      Features.DECODER
          .withFeatures(
              Feature.DCP,
              Feature.HEAD_SIZE_V,
              Feature.SLIDING_WINDOW,
              Feature.KV_CONNECTOR,
              Feature.ADAPTIVE_VERIFICATION,
              Feature.LSE)
          .withDevices(DeviceSupport.cuda());

  private static final FeatureSet SERVES =
      ROW.withBlockSizes(BlockSizes.multiplesOf(16))
          .withHeadSizes(HeadSizes.multiplesOf(8, 8, 512));

  /** What each version of FlashAttention serves under this name, in the order of its versions. */
  private static final Seq<Capabilities> VERSIONS =
      FlashAttention.VERSIONS.map(inherited -> new Capabilities(SERVES, inherited.all()));

  static final BackendDeclaration DECLARATION =
      BackendDeclaration.of(
              NAME,
              Vector.of(Features.standard(NAME, ROW)),
              new Capabilities(ROW, FlashAttention.DECLARATION.capabilities().all()),
              FlashAttentionDiffKv::variant)
          .but(FlashAttentionDiffKv::needsVersion3Or4);

  private FlashAttentionDiffKv() {}

  private static ResolvedVariant variant(AttentionRequest request) {
    ResolvedVariant inherited = FlashAttention.DECLARATION.variant(request);
    return new ResolvedVariant(
        inherited.version(),
        underThisName(inherited.capabilities()),
        inherited.graphSupport(),
        inherited.preferredBlockSize(),
        inherited.notes(),
        inherited.refusal());
  }

  @SuppressWarnings("ReferenceEquality") // every version has one declaration
  private static Capabilities underThisName(Capabilities version) {
    return VERSIONS.get(FlashAttention.VERSIONS.indexWhere(known -> known == version));
  }

  private static Option<InvalidReason> needsVersion3Or4(
      AttentionRequest request, ResolvedVariant variant) {
    boolean serves = variant.version().equals("FA3") || variant.version().equals("FA4");
    return Features.when(
        !serves,
        ReasonCode.COMBINATION,
        "keys and values of different widths need FlashAttention 3 or 4, which does not resolve"
            + " here",
        variant.version().isEmpty() ? "none" : variant.version(),
        "9.x or 10.x");
  }
}
