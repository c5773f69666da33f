package bifocal.cuda.triton;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.Execution;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ResolvedVariant;
import bifocal.core.backend.ResolvesVariants;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.ImageMask;
import bifocal.core.select.FeatureRow;
import bifocal.core.select.Tabulated;
import bifocal.cuda.select.TritonAttention;
import io.vavr.collection.Seq;
import io.vavr.control.Option;

/** {@code TRITON_ATTN}: any mask that leaves each query one interval of keys. */
public final class TritonAttnBackend extends TritonBackend implements ResolvesVariants, Tabulated {
  /** Its name. */
  public static final BackendName NAME = TritonAttention.NAME;

  static final Execution WITH_PACK =
      new Execution(
          Execution.Status.NATIVE_WITH_PACK,
          "TRITON_PACK: a pack of these kernels; shown on an NVIDIA H200,"
              + " kernels/triton/results/2026-11-29-nvidia-h200.json");

  /** What runs here and the reference does not say. */
  private static final FeatureSet EXTENSIONS =
      FeatureSet.NONE
          .withKvCacheDtypes(KvCacheDtype.FLOAT32)
          .withImageMasks(ImageMask.CLAMP_BOTH)
          .withFeatures(
              Feature.NON_CAUSAL_LEFT_WINDOW,
              Feature.RIGHT_WINDOW,
              Feature.LSE,
              Feature.INDIRECT_REQUESTS);

  private static final Capabilities CAPABILITIES =
      extended(TritonAttention.DECLARATION.capabilities());

  /** A backend over the kernels of a host, which it looks for when they are first needed. */
  public TritonAttnBackend(TritonHost host) {
    super(host, TritonVariant.GENERAL);
  }

  @Override
  public BackendName name() {
    return NAME;
  }

  @Override
  public Seq<FeatureRow> rows() {
    return TritonAttention.DECLARATION.rows();
  }

  @Override
  public Capabilities capabilities() {
    return CAPABILITIES;
  }

  @Override
  public Capabilities capabilities(AttentionRequest request) {
    return onThisHost(CAPABILITIES, request);
  }

  private static Capabilities extended(Capabilities declared) {
    return new Capabilities(declared.reference(), declared.extensions().union(EXTENSIONS));
  }

  @Override
  public ResolvedVariant variant(AttentionRequest request) {
    return TritonAttention.DECLARATION.variant(request);
  }

  @Override
  public Option<InvalidReason> checkCombination(AttentionRequest request) {
    return TritonAttention.DECLARATION.objection(request);
  }

  @Override
  public Execution execution() {
    return WITH_PACK;
  }

  @Override
  Option<InvalidReason> objection(AttentionLayerSpec.Dense layer) {
    return Option.none();
  }
}
