package bifocal.core.backend;

import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.route.Child;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.util.function.Supplier;

/**
 * Asks of one backend whether it can serve one layer. Every check is made, in a fixed order, and
 * every failure is a reason; a property that the layer does not use is no check.
 *
 * <p>The checks of the reference come first, in its order and words, then those for what the
 * reference does not ask about, then the backend's own about combinations, and on a probed host
 * last of all whether the kernels are here.
 */
public final class BackendValidator {
  private final Scope scope;

  /** Which part of a backend's capabilities counts. */
  public enum Scope {
    /** Everything that runs: the reference and the extensions. */
    EXECUTION,
    /** What the reference says, and nothing that only runs here. */
    REFERENCE
  }

  /**
   * A backend that can serve the layer.
   *
   * @param backend the backend
   * @param features what it was accepted by: the variant that serves the request
   * @param extension whether the reference alone would have refused it
   */
  public record Accepted(AttentionBackend<?> backend, FeatureSet features, boolean extension) {}

  public BackendValidator(Scope scope) {
    this.scope = scope;
  }

  /** Checks one backend; the variant that serves the request is resolved once and asked. */
  public Validation<Seq<InvalidReason>, Accepted> validate(
      AttentionBackend<?> backend, AttentionRequest request) {
    Capabilities capabilities = backend.capabilities(request);
    FeatureSet features =
        switch (scope) {
          case EXECUTION -> capabilities.all();
          case REFERENCE -> capabilities.reference();
        };
    Seq<InvalidReason> table =
        properties(request, features)
            .appendAll(ownProperties(request, features))
            .appendAll(logSumExp(backend, request, features));
    Seq<InvalidReason> reasons =
        table.appendAll(combination(backend, request, table)).appendAll(host(backend, request));
    return reasons.isEmpty()
        ? Validation.valid(new Accepted(backend, features, beyondReference(request, capabilities)))
        : Validation.invalid(reasons);
  }

  private static boolean beyondReference(AttentionRequest request, Capabilities capabilities) {
    return !capabilities.extensions().equals(FeatureSet.NONE)
        && properties(request, capabilities.reference())
            .appendAll(ownProperties(request, capabilities.reference()))
            .nonEmpty();
  }

  /** The checks of the reference, in its order. */
  private static Seq<InvalidReason> properties(AttentionRequest request, FeatureSet features) {
    AttentionLayerSpec layer = request.layer();
    AttentionMask mask = layer.mask();
    Deployment deployment = request.deployment();
    boolean dcp = deployment.decodeContextParallel() > 1;
    boolean nonCausal = !mask.causal() && layer.type() == AttentionType.DECODER;
    return present(
        headSize(layer, features),
        dtype(layer, features),
        kvCacheDtype(layer, features),
        blockSize(request, features),
        images(request, features),
        equal(
            features,
            Feature.MLA,
            layer.cachesLatents(),
            ReasonCode.MLA,
            "MLA not supported",
            "non-MLA not supported"),
        needs(
            features,
            Feature.SINK,
            layer.sinks(),
            ReasonCode.SINK,
            "attention sinks not supported"),
        equal(
            features,
            Feature.SPARSE,
            layer.choosesKeys(),
            ReasonCode.SPARSE,
            "sparse not supported",
            "non-sparse not supported"),
        needs(
            features,
            Feature.PER_HEAD_QUANT_SCALES,
            deployment.perHeadQuantScales(),
            ReasonCode.PER_HEAD_QUANT_SCALES,
            "per-head quant scales not supported"),
        device(request, features),
        attentionType(layer, features),
        needs(
            features,
            Feature.SLIDING_WINDOW,
            mask.window().isDefined(),
            ReasonCode.SLIDING_WINDOW,
            "sliding window not supported"),
        needs(features, Feature.RSWA, deployment.rswa(), ReasonCode.RSWA, "R-SWA not supported"),
        needs(
            features,
            Feature.NON_CAUSAL,
            nonCausal,
            ReasonCode.NON_CAUSAL,
            "non-causal attention not supported"),
        needs(
            features,
            Feature.NON_CAUSAL_DCP,
            layer.cachesLatents() && nonCausal && dcp,
            ReasonCode.NON_CAUSAL_DCP,
            "non-causal MLA attention with DCP not supported"),
        needs(
            features,
            Feature.BATCH_INVARIANCE,
            deployment.batchInvariant(),
            ReasonCode.BATCH_INVARIANCE,
            "batch invariance not supported"),
        needs(
            features,
            Feature.KV_CONNECTOR,
            deployment.kvConnector(),
            ReasonCode.KV_CONNECTOR,
            "KV connector not supported"),
        needs(
            features,
            Feature.PCP,
            deployment.prefillContextParallel() > 1,
            ReasonCode.PCP,
            "PCP not supported"),
        needs(features, Feature.DCP, dcp, ReasonCode.DCP, "DCP not supported"),
        needs(
            features,
            Feature.ADAPTIVE_VERIFICATION,
            deployment.adaptiveVerification(),
            ReasonCode.ADAPTIVE_VERIFICATION,
            "device-cpu query lens mismatch not supported, this is needed for adaptive"
                + " verification"));
  }

  /** What the reference does not ask about, and a kernel would leave out in silence. */
  private static Seq<InvalidReason> ownProperties(AttentionRequest request, FeatureSet features) {
    AttentionLayerSpec layer = request.layer();
    return present(
        needs(
            features,
            Feature.SOFTCAP,
            layer.softcap().isDefined(),
            ReasonCode.SOFTCAP,
            "softcap not supported"),
        needs(features, Feature.ALIBI, layer.alibi(), ReasonCode.ALIBI, "ALiBi not supported"),
        needs(
            features,
            Feature.ALIBI_SQRT,
            layer.alibi() && request.deployment().alibiSqrt(),
            ReasonCode.ALIBI,
            "ALiBi with the square root of the distance not supported"),
        needs(
            features,
            Feature.CHUNKED_LOCAL,
            layer.mask().chunk().isDefined(),
            ReasonCode.CHUNKED_LOCAL,
            "chunked-local attention not supported"),
        headSizeV(layer, features),
        kvLayout(layer, features));
  }

  private static Option<InvalidReason> headSize(AttentionLayerSpec layer, FeatureSet features) {
    return unless(
        features.headSizes().accepts(layer.headSize()),
        ReasonCode.HEAD_SIZE,
        "head_size not supported",
        layer::headSize,
        features::headSizes);
  }

  private static Option<InvalidReason> dtype(AttentionLayerSpec layer, FeatureSet features) {
    return unless(
        features.dtypes().contains(layer.dtype()),
        ReasonCode.DTYPE,
        "dtype not supported",
        layer::dtype,
        () -> features.dtypes().mkString(", "));
  }

  private static Option<InvalidReason> kvCacheDtype(AttentionLayerSpec layer, FeatureSet features) {
    return unless(
        !layer.type().usesKvCache() || features.kvCacheDtypes().contains(layer.kvCacheDtype()),
        ReasonCode.KV_CACHE_DTYPE,
        "kv_cache_dtype not supported",
        layer::kvCacheDtype,
        () -> features.kvCacheDtypes().mkString(", "));
  }

  /** A page larger than a kernel's block is no obstacle when whole blocks fill it. */
  private static Option<InvalidReason> blockSize(AttentionRequest request, FeatureSet features) {
    return unless(
        !request.layer().type().usesKvCache()
            || request
                .blockSize()
                .forAll(size -> features.blockSizes().kernelBlockFor(size).isDefined()),
        ReasonCode.BLOCK_SIZE,
        "block_size not supported",
        () -> request.blockSize().map(String::valueOf).getOrElse(""),
        features::blockSizes);
  }

  /** The layer's own image mask must be one of the declared; a model's, any. */
  private static Option<InvalidReason> images(AttentionRequest request, FeatureSet features) {
    ImageMask own = request.layer().mask().images();
    boolean served =
        own == ImageMask.NONE
            ? features.imageMasks().nonEmpty()
            : features.imageMasks().contains(own);
    return unless(
        !request.mmPrefix() || served,
        ReasonCode.MM_PREFIX,
        "partial multimodal token full attention not supported",
        () -> own == ImageMask.NONE ? "another layer's image mask" : own.label(),
        () ->
            features.imageMasks().isEmpty()
                ? "none"
                : features.imageMasks().map(ImageMask::label).mkString(", "));
  }

  private static Option<InvalidReason> device(AttentionRequest request, FeatureSet features) {
    return unless(
        features.devices().accepts(request.device()),
        ReasonCode.DEVICE,
        "compute capability not supported",
        () -> request.device().label(),
        features::devices);
  }

  private static Option<InvalidReason> attentionType(
      AttentionLayerSpec layer, FeatureSet features) {
    return features.types().contains(layer.type())
        ? Option.none()
        : Option.some(
            new InvalidReason(
                ReasonCode.ATTENTION_TYPE,
                "attention type " + layer.type().label() + " not supported",
                layer.type().label(),
                features.types().map(AttentionType::label).mkString(", ")));
  }

  private static Option<InvalidReason> headSizeV(AttentionLayerSpec layer, FeatureSet features) {
    return unless(
        layer.cachesLatents()
            || layer.headSizeV() == layer.headSize()
            || features.has(Feature.HEAD_SIZE_V),
        ReasonCode.HEAD_SIZE_V,
        "head_size_v not supported",
        layer::headSizeV,
        layer::headSize);
  }

  private static Option<InvalidReason> kvLayout(AttentionLayerSpec layer, FeatureSet features) {
    return unless(
        !layer.type().usesKvCache() || features.kvLayouts().nonEmpty(),
        ReasonCode.KV_LAYOUT,
        "no KV cache layout declared",
        () -> "none",
        () -> "at least one");
  }

  /** Ranks that share a sequence merge by the natural log-sum-exp; kernels here must return it. */
  private static Option<InvalidReason> logSumExp(
      AttentionBackend<?> backend, AttentionRequest request, FeatureSet features) {
    boolean kernelsHere =
        switch (backend.execution().status()) {
          case NATIVE, NATIVE_WITH_PACK -> true;
          case REFERENCE_ONLY, NOT_HERE -> false;
        };
    boolean needed =
        kernelsHere
            && request.deployment().decodeContextParallel() > 1
            && features.has(Feature.DCP);
    return Option.when(
        needed && !features.has(Feature.LSE), () -> withoutLogSumExp(backend, request, features));
  }

  /** Names the child that is to blame, where the backend is a composite. */
  private static InvalidReason withoutLogSumExp(
      AttentionBackend<?> backend, AttentionRequest request, FeatureSet features) {
    if (backend instanceof Composed composed) {
      for (Child child : Child.values()) {
        AttentionRequest asked = composed.asked(child, request);
        AttentionBackend<?> guilty = composed.child(child);
        FeatureSet own = guilty.capabilities(asked).all();
        if (!own.has(Feature.LSE)) {
          InvalidReason reason = withoutLogSumExp(guilty, asked, own);
          return new InvalidReason(
              reason.code(), guilty.name() + ": " + reason.text(), reason.seen(), reason.wanted());
        }
      }
    }
    return new InvalidReason(
        ReasonCode.LSE,
        "log-sum-exp not returned, which decode context parallelism merges by",
        features.has(Feature.LSE_BASE_2) ? "base 2" : "none",
        "base e");
  }

  private static Option<InvalidReason> combination(
      AttentionBackend<?> backend, AttentionRequest request, Seq<InvalidReason> failed) {
    return failed.exists(reason -> backend.combinationReads().contains(reason.code()))
        ? Option.none()
        : backend.checkCombination(request);
  }

  private static Option<InvalidReason> host(AttentionBackend<?> backend, AttentionRequest request) {
    return request.device().simulated() ? Option.none() : backend.missingOnThisHost(request);
  }

  private static Option<InvalidReason> needs(
      FeatureSet features, Feature feature, boolean wanted, ReasonCode code, String text) {
    return unless(!wanted || features.has(feature), code, text, () -> "yes", () -> "no");
  }

  private static Option<InvalidReason> equal(
      FeatureSet features,
      Feature feature,
      boolean wanted,
      ReasonCode code,
      String textWanted,
      String textNotWanted) {
    return unless(
        wanted == features.has(feature),
        code,
        wanted ? textWanted : textNotWanted,
        () -> wanted ? "yes" : "no",
        () -> wanted ? "no" : "yes");
  }

  @SafeVarargs
  private static Seq<InvalidReason> present(Option<InvalidReason>... reasons) {
    Seq<InvalidReason> present = Vector.empty();
    for (Option<InvalidReason> reason : reasons) {
      if (reason.isDefined()) {
        present = present.append(reason.get());
      }
    }
    return present;
  }

  /** A reason, described only when the check fails. */
  private static Option<InvalidReason> unless(
      boolean passes, ReasonCode code, String text, Supplier<?> seen, Supplier<?> wanted) {
    return passes
        ? Option.none()
        : Option.some(
            new InvalidReason(
                code, text, String.valueOf(seen.get()), String.valueOf(wanted.get())));
  }
}
