package bifocal.core.backend;

import bifocal.core.route.Child;
import io.vavr.collection.Seq;
import io.vavr.control.Option;
import io.vavr.control.Validation;

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
        TableChecks.of(request, features)
            .map(reason -> sizesOfChildren(backend, request, reason))
            .appendAll(logSumExp(backend, request, features));
    Seq<InvalidReason> reasons =
        table.appendAll(combination(backend, request, table)).appendAll(host(backend, request));
    return reasons.isEmpty()
        ? Validation.valid(new Accepted(backend, features, beyondReference(request, capabilities)))
        : Validation.invalid(reasons);
  }

  private static boolean beyondReference(AttentionRequest request, Capabilities capabilities) {
    return !capabilities.extensions().equals(FeatureSet.NONE)
        && TableChecks.of(request, capabilities.reference()).nonEmpty();
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

  /** What each child of a composite would take instead of the block size that neither shares. */
  private static InvalidReason sizesOfChildren(
      AttentionBackend<?> backend, AttentionRequest request, InvalidReason reason) {
    return reason.code() == ReasonCode.BLOCK_SIZE && backend instanceof Composed pair
        ? reason.wanting(sizes(pair, Child.A, request) + "; " + sizes(pair, Child.B, request))
        : reason;
  }

  private static String sizes(Composed pair, Child child, AttentionRequest request) {
    AttentionBackend<?> own = pair.child(child);
    return own.name() + ": " + own.capabilities(pair.asked(child, request)).all().blockSizes();
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
          return withoutLogSumExp(guilty, asked, own).saidBy(guilty.name());
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
}
