package bifocal.core.backend;

import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.util.ArrayList;

/**
 * What a declaration says of one request, property by property, in a fixed order and without
 * stopping at the first failure. A check that passes costs nothing but itself.
 */
final class TableChecks {
  private final AttentionRequest request;
  private final FeatureSet features;
  private final ArrayList<InvalidReason> reasons = new ArrayList<>();

  private TableChecks(AttentionRequest request, FeatureSet features) {
    this.request = request;
    this.features = features;
  }

  /** Everything that the declaration does not allow. */
  static Seq<InvalidReason> of(AttentionRequest request, FeatureSet features) {
    TableChecks checks = new TableChecks(request, features);
    checks.shape();
    checks.layer();
    checks.deployment();
    checks.ownProperties();
    return Vector.ofAll(checks.reasons);
  }

  /** The checks of the reference, in its order: first shapes and types. */
  private void shape() {
    AttentionLayerSpec layer = request.layer();
    unless(
        features.headSizes().accepts(layer.headSize()),
        ReasonCode.HEAD_SIZE,
        "head_size not supported",
        layer.headSize(),
        features.headSizes());
    unless(
        features.dtypes().contains(layer.dtype()),
        ReasonCode.DTYPE,
        "dtype not supported",
        layer.dtype(),
        features.dtypes());
    unless(
        !layer.type().usesKvCache() || features.kvCacheDtypes().contains(layer.kvCacheDtype()),
        ReasonCode.KV_CACHE_DTYPE,
        "kv_cache_dtype not supported",
        layer.kvCacheDtype(),
        features.kvCacheDtypes());
    blockSize();
    images();
  }

  /** A page larger than a kernel's block is no obstacle when whole blocks fill it. */
  private void blockSize() {
    unless(
        !request.layer().type().usesKvCache()
            || request.blockSize().isEmpty()
            || features.blockSizes().runsPagesOf(request.blockSize().get()),
        ReasonCode.BLOCK_SIZE,
        "block_size not supported",
        request.blockSize(),
        features.blockSizes());
  }

  /** The layer's own image mask must be one of the declared; a model's, any. */
  private void images() {
    ImageMask own = request.layer().mask().images();
    boolean served =
        own == ImageMask.NONE
            ? features.imageMasks().nonEmpty()
            : features.imageMasks().contains(own);
    unless(
        !request.mmPrefix() || served,
        ReasonCode.MM_PREFIX,
        "partial multimodal token full attention not supported",
        own == ImageMask.NONE ? "another layer's image mask" : own,
        features.imageMasks().isEmpty() ? "none" : features.imageMasks());
  }

  private void layer() {
    AttentionLayerSpec layer = request.layer();
    equal(
        Feature.MLA,
        layer.cachesLatents(),
        ReasonCode.MLA,
        "MLA not supported",
        "non-MLA not supported");
    needs(Feature.SINK, layer.sinks(), ReasonCode.SINK, "attention sinks not supported");
    equal(
        Feature.SPARSE,
        layer.choosesKeys(),
        ReasonCode.SPARSE,
        "sparse not supported",
        "non-sparse not supported");
    needs(
        Feature.PER_HEAD_QUANT_SCALES,
        request.deployment().perHeadQuantScales(),
        ReasonCode.PER_HEAD_QUANT_SCALES,
        "per-head quant scales not supported");
    unless(
        features.devices().accepts(request.device()),
        ReasonCode.DEVICE,
        "compute capability not supported",
        request.device(),
        features.devices());
    attentionType(layer.type());
    needs(
        Feature.SLIDING_WINDOW,
        layer.mask().window().isDefined(),
        ReasonCode.SLIDING_WINDOW,
        "sliding window not supported");
  }

  private void attentionType(AttentionType type) {
    if (!features.types().contains(type)) {
      add(
          ReasonCode.ATTENTION_TYPE,
          "attention type " + type.label() + " not supported",
          type,
          features.types());
    }
  }

  private void deployment() {
    AttentionMask mask = request.layer().mask();
    Deployment deployment = request.deployment();
    boolean dcp = deployment.decodeContextParallel() > 1;
    boolean nonCausal = !mask.causal() && request.layer().type() == AttentionType.DECODER;
    needs(Feature.RSWA, deployment.rswa(), ReasonCode.RSWA, "R-SWA not supported");
    needs(
        Feature.NON_CAUSAL, nonCausal, ReasonCode.NON_CAUSAL, "non-causal attention not supported");
    needs(
        Feature.NON_CAUSAL_DCP,
        request.layer().cachesLatents() && nonCausal && dcp,
        ReasonCode.NON_CAUSAL_DCP,
        "non-causal MLA attention with DCP not supported");
    needs(
        Feature.BATCH_INVARIANCE,
        deployment.batchInvariant(),
        ReasonCode.BATCH_INVARIANCE,
        "batch invariance not supported");
    needs(
        Feature.KV_CONNECTOR,
        deployment.kvConnector(),
        ReasonCode.KV_CONNECTOR,
        "KV connector not supported");
    needs(
        Feature.PCP, deployment.prefillContextParallel() > 1, ReasonCode.PCP, "PCP not supported");
    needs(Feature.DCP, dcp, ReasonCode.DCP, "DCP not supported");
    needs(
        Feature.ADAPTIVE_VERIFICATION,
        deployment.adaptiveVerification(),
        ReasonCode.ADAPTIVE_VERIFICATION,
        "device-cpu query lens mismatch not supported, this is needed for adaptive verification");
  }

  /** What the reference does not ask about, and a kernel would leave out in silence. */
  private void ownProperties() {
    AttentionLayerSpec layer = request.layer();
    needs(
        Feature.SOFTCAP, layer.softcap().isDefined(), ReasonCode.SOFTCAP, "softcap not supported");
    needs(Feature.ALIBI, layer.alibi(), ReasonCode.ALIBI, "ALiBi not supported");
    needs(
        Feature.ALIBI_SQRT,
        layer.alibi() && request.deployment().alibiSqrt(),
        ReasonCode.ALIBI,
        "ALiBi with the square root of the distance not supported");
    needs(
        Feature.CHUNKED_LOCAL,
        layer.mask().chunk().isDefined(),
        ReasonCode.CHUNKED_LOCAL,
        "chunked-local attention not supported");
    unless(
        layer.cachesLatents()
            || layer.headSizeV() == layer.headSize()
            || features.has(Feature.HEAD_SIZE_V),
        ReasonCode.HEAD_SIZE_V,
        "head_size_v not supported",
        layer.headSizeV(),
        layer.headSize());
    unless(
        !layer.type().usesKvCache() || features.kvLayouts().nonEmpty(),
        ReasonCode.KV_LAYOUT,
        "no KV cache layout declared",
        "none",
        "at least one");
  }

  private void needs(Feature feature, boolean wanted, ReasonCode code, String text) {
    unless(!wanted || features.has(feature), code, text, "yes", "no");
  }

  private void equal(
      Feature feature, boolean wanted, ReasonCode code, String textWanted, String textNotWanted) {
    unless(
        wanted == features.has(feature),
        code,
        wanted ? textWanted : textNotWanted,
        wanted ? "yes" : "no",
        wanted ? "no" : "yes");
  }

  private void unless(boolean passes, ReasonCode code, String text, Object seen, Object wanted) {
    if (!passes) {
      add(code, text, seen, wanted);
    }
  }

  private void add(ReasonCode code, String text, Object seen, Object wanted) {
    reasons.add(new InvalidReason(code, text, seen, wanted));
  }
}
