package bifocal.composite;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.cache.KvLayout;
import bifocal.core.route.Child;
import bifocal.core.route.RoutingPolicy;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.function.Function;

/**
 * Why two backends cannot be one. Every rule is asked, in a fixed order; a pair that passes has at
 * least one layer, cache and device that both children serve.
 */
final class CompositionRules {
  private final AttentionBackend<?> a;
  private final AttentionBackend<?> b;
  private final FeatureSet featuresA;
  private final FeatureSet featuresB;
  private final FeatureSet shared;
  private final RoutingPolicy policy;

  private CompositionRules(
      AttentionBackend<?> a, AttentionBackend<?> b, RoutingPolicy policy, CompositeLimits limits) {
    this.a = a;
    this.b = b;
    this.policy = policy;
    this.featuresA = a.capabilities().all();
    this.featuresB = b.capabilities().all();
    this.shared = limits.limit(SharedFeatures.of(featuresA, featuresB, policy, Option.none()));
  }

  /** Every reason, none for a pair that can be composed. */
  static Seq<InvalidReason> reasons(
      AttentionBackend<?> a, AttentionBackend<?> b, RoutingPolicy policy, CompositeLimits limits) {
    CompositionRules rules = new CompositionRules(a, b, policy, limits);
    return Vector.of(
            rules.separateKvWrite(Child.A, a, rules.featuresA),
            rules.separateKvWrite(Child.B, b, rules.featuresB),
            rules.sameKind(ReasonCode.MLA, Feature.MLA, "latent attention"),
            rules.sameKind(ReasonCode.SPARSE, Feature.SPARSE, "attention over chosen keys"),
            rules.shared(ReasonCode.DEVICE, "device", f -> f.devices().platforms()),
            rules.shared(ReasonCode.DTYPE, "dtype", FeatureSet::dtypes),
            rules.shared(ReasonCode.ATTENTION_TYPE, "attention type", FeatureSet::types),
            rules.sharedText(
                ReasonCode.HEAD_SIZE,
                "head size",
                f -> f.headSizes().rules().isEmpty(),
                f -> f.headSizes().toString()),
            rules.shared(ReasonCode.KV_CACHE_DTYPE, "KV cache dtype", FeatureSet::kvCacheDtypes),
            rules.sharedText(
                ReasonCode.KV_LAYOUT,
                "KV layout",
                f -> f.kvLayouts().isEmpty(),
                f -> f.kvLayouts().map(KvLayout::name).mkString(", ")),
            rules.sharedText(
                ReasonCode.BLOCK_SIZE,
                "kernel block size",
                f -> f.blockSizes().isEmpty(),
                f -> f.blockSizes().toString()),
            rules.lowering(),
            rules.rightWindow(),
            rules.lowersItsImages())
        .flatMap(Function.identity());
  }

  private Option<InvalidReason> separateKvWrite(
      Child child, AttentionBackend<?> backend, FeatureSet features) {
    return Option.when(
        features.has(Feature.KV_WRITE_IN_FORWARD),
        () ->
            reason(
                ReasonCode.COMPOSITION,
                "child " + child + " writes the KV cache inside forward",
                backend.name().value(),
                "children that leave the cache to child A's writeKv"));
  }

  private Option<InvalidReason> sameKind(ReasonCode code, Feature kind, String what) {
    return Option.when(
        featuresA.has(kind) != featuresB.has(kind),
        () ->
            reason(
                code,
                "only one child does " + what,
                featuresA.has(kind) ? a.name().value() : b.name().value(),
                "two children of the same kind"));
  }

  private Option<InvalidReason> shared(
      ReasonCode code, String what, Function<FeatureSet, Set<?>> property) {
    return sharedText(
        code, what, f -> property.apply(f).isEmpty(), f -> property.apply(f).mkString(", "));
  }

  private Option<InvalidReason> sharedText(
      ReasonCode code,
      String what,
      Function<FeatureSet, Boolean> empty,
      Function<FeatureSet, String> text) {
    return Option.when(
        empty.apply(shared),
        () ->
            reason(
                code,
                "no common " + what,
                sideBySide(text.apply(featuresA), text.apply(featuresB)),
                "one " + what + " that both run within the limits of the composite"));
  }

  private String sideBySide(String left, String right) {
    return a.name() + ": " + orNone(left) + " | " + b.name() + ": " + orNone(right);
  }

  private static String orNone(String text) {
    return text.isEmpty() ? "none" : text;
  }

  private Option<InvalidReason> lowering() {
    return Option.when(
        policy.lowers() && !featuresB.has(Feature.NON_CAUSAL_LEFT_WINDOW),
        () ->
            reason(
                ReasonCode.NON_CAUSAL,
                "child B does not run non-causal runs with a left window",
                b.name().value(),
                "what the routing policy " + policy.name() + " lowers images to"));
  }

  private Option<InvalidReason> rightWindow() {
    return Option.when(
        policy.lowersWithRightWindow() && !featuresB.has(Feature.RIGHT_WINDOW),
        () ->
            reason(
                ReasonCode.NON_CAUSAL,
                "child B does not run non-causal runs with two different windows",
                b.name().value(),
                "what the routing policy " + policy.name() + " lowers long images to"));
  }

  private Option<InvalidReason> lowersItsImages() {
    return Option.when(
        policy.lowers() && policy.carriesImages(Child.B),
        () ->
            reason(
                ReasonCode.COMPOSITION,
                "the routing policy hands child B images both as they are and lowered",
                policy.name(),
                "a policy that lowers every image that child B gets"));
  }

  private static InvalidReason reason(ReasonCode code, String text, String seen, String wanted) {
    return new InvalidReason(code, text, seen, wanted);
  }
}
