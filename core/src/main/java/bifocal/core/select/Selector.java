package bifocal.core.select;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.BackendRegistry;
import bifocal.core.backend.BackendValidator;
import bifocal.core.backend.Feature;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.NearestName;
import bifocal.core.layer.AttentionLayerSpec;
import io.vavr.Lazy;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.TreeMap;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;

/**
 * Chooses a backend for a layer group: the one the user names, which is taken or refused and never
 * replaced; else the first valid candidate of the platform's plan. It remembers recent outcomes,
 * and any thread may use it.
 */
public final class Selector {
  private static final BackendValidator EVERYTHING =
      new BackendValidator(BackendValidator.Scope.EXECUTION);
  private static final BackendValidator REFERENCE =
      new BackendValidator(BackendValidator.Scope.REFERENCE);

  private final BackendRegistry registry;
  private final Map<Platform, PlatformPolicy> platforms;
  private final PhasePairing pairing;
  private final LatentPrefillRegistry prefills;
  private final AttentionObserver observer;
  private final AtomicReference<Memory> memory;

  /** A selector that nobody observes. */
  public Selector(
      BackendRegistry registry, Iterable<PlatformPolicy> platforms, PhasePairing pairing) {
    this(registry, platforms, pairing, new LatentPrefillRegistry(), AttentionObserver.NONE);
  }

  /**
   * A selector.
   *
   * @param registry backends; each selection sees one moment of it
   * @param platforms at most one policy for each platform, else {@code INVALID_COMPOSITION}
   * @param pairing makes one backend of one for prefills and one for decodes
   * @param prefills backends of latent prefill that hosts register
   * @param observer sees what is selected
   */
  public Selector(
      BackendRegistry registry,
      Iterable<PlatformPolicy> platforms,
      PhasePairing pairing,
      LatentPrefillRegistry prefills,
      AttentionObserver observer) {
    this.registry = registry;
    this.platforms = byPlatform(platforms);
    this.pairing = pairing;
    this.prefills = prefills;
    this.observer = observer;
    this.memory = new AtomicReference<>(new Memory(registry.snapshot(), prefills.snapshot()));
  }

  private static Map<Platform, PlatformPolicy> byPlatform(Iterable<PlatformPolicy> policies) {
    Map<Platform, PlatformPolicy> found = TreeMap.empty();
    for (PlatformPolicy policy : policies) {
      Platform platform = policy.platform();
      if (found.containsKey(platform)) {
        throw BifocalException.of(
                ErrorCode.INVALID_COMPOSITION,
                "policies of platform " + platform.label(),
                found.get(platform).get().getClass().getName()
                    + " and "
                    + policy.getClass().getName(),
                "one")
            .withRemedy("install one module for each platform");
      }
      found = found.put(platform, policy);
    }
    return found;
  }

  /** The policies, in the order of the platforms. */
  public Seq<PlatformPolicy> policies() {
    return platforms.values().toVector();
  }

  /** The registry that this selector reads. */
  public BackendRegistry registry() {
    return registry;
  }

  /** The backends of latent prefill that hosts register. */
  public LatentPrefillRegistry latentPrefills() {
    return prefills;
  }

  /**
   * The policy of a platform.
   *
   * @throws BifocalException {@code INVALID_OPTION} when the platform's module is not there
   */
  public PlatformPolicy policy(Platform platform) {
    return platforms
        .get(platform)
        .getOrElseThrow(
            () ->
                BifocalException.of(
                        ErrorCode.INVALID_OPTION,
                        "platform",
                        platform.label(),
                        platforms.isEmpty()
                            ? "no platform is installed"
                            : "one of " + platforms.keySet().map(Platform::label).mkString(", "))
                    .withRemedy("add bifocal-backends-" + platform.label() + " to the class path"));
  }

  /**
   * Chooses a backend.
   *
   * @throws BifocalException when the request itself makes no sense: an unknown name, a platform
   *     that is not installed
   */
  public Validation<SelectionRefusal, SelectionReport> select(SelectionRequest request) {
    Validation<SelectionRefusal, SelectionReport> outcome = memory().outcome(request);
    if (observer.enabled() && outcome.isValid()) {
      SelectionReport report = outcome.get();
      observer.selected(
          request.asked(),
          report.backend(),
          report.source().label(),
          report.candidates().map(Candidate::inBrief));
    }
    return outcome;
  }

  /**
   * Chooses a backend, for those who cannot go on without.
   *
   * @throws BifocalException {@code NO_VALID_BACKEND} or {@code INVALID_SELECTION} with every
   *     reason, or as {@link #select}
   */
  public SelectionReport require(SelectionRequest request) {
    Validation<SelectionRefusal, SelectionReport> outcome = select(request);
    if (outcome.isInvalid()) {
      throw outcome.getError().exception();
    }
    return outcome.get();
  }

  /** What was found out about the present backends; another snapshot starts another memory. */
  private Memory memory() {
    BackendRegistry.Snapshot now = registry.snapshot();
    LatentPrefillRegistry.Snapshot prefillsNow = prefills.snapshot();
    Memory known = memory.get();
    if (known.backends.equals(now) && known.registered.equals(prefillsNow)) {
      return known;
    }
    Memory fresh = new Memory(now, prefillsNow);
    memory.set(fresh);
    return fresh;
  }

  /** Outcomes by request, over one moment of the registry: a selection depends on nothing else. */
  private final class Memory {
    private static final int MOST = 1_024;

    private final BackendRegistry.Snapshot backends;
    private final LatentPrefillRegistry.Snapshot registered;
    private final ConcurrentHashMap<SelectionRequest, Validation<SelectionRefusal, SelectionReport>>
        outcomes = new ConcurrentHashMap<>(2 * MOST);

    private Memory(BackendRegistry.Snapshot backends, LatentPrefillRegistry.Snapshot registered) {
      this.backends = backends;
      this.registered = registered;
    }

    private Validation<SelectionRefusal, SelectionReport> outcome(SelectionRequest request) {
      Validation<SelectionRefusal, SelectionReport> known = outcomes.get(request);
      if (known != null) {
        return known;
      }
      Validation<SelectionRefusal, SelectionReport> found =
          new Selection(backends, registered, request).run();
      if (outcomes.size() >= MOST) {
        outcomes.clear();
      }
      outcomes.put(request, found);
      return found;
    }
  }

  /**
   * Chooses a backend for each layer group of one model.
   *
   * @throws BifocalException {@code INVALID_OPTION} when a quantised cache is asked for and no
   *     group has a cache; where some group has one, the type is no filter for those that have none
   */
  public Seq<Validation<SelectionRefusal, SelectionReport>> selectGroups(
      Seq<SelectionRequest> groups) {
    Seq<AttentionLayerSpec> layers = groups.map(group -> group.attention().layer());
    boolean cached = layers.exists(layer -> layer.type().usesKvCache());
    Option<KvCacheDtype> asked =
        layers.map(AttentionLayerSpec::kvCacheDtype).find(type -> type != KvCacheDtype.AUTO);
    if (!cached && asked.isDefined()) {
      throw BifocalException.of(
              ErrorCode.INVALID_OPTION,
              "kv_cache_dtype of a model without any KV cache",
              asked.get(),
              "auto")
          .withRemedy("leave the type of the KV cache open");
    }
    return groups.map(this::select);
  }

  /** Checks one backend, which need not be registered, as if the user had named it. */
  public Validation<SelectionRefusal, SelectionReport> check(
      AttentionBackend<?> backend, SelectionRequest request) {
    Selection selection = new Selection(registry.snapshot(), prefills.snapshot(), request);
    return selection.explicit(Judgement.of(selection.validator, backend, selection.plan.asked()));
  }

  /**
   * As {@link #select}, for those who cannot go on without.
   *
   * @throws BifocalException {@code INVALID_SELECTION} or {@code NO_VALID_BACKEND} with every
   *     reason
   */
  public SelectionReport selectOrThrow(SelectionRequest request) {
    Validation<SelectionRefusal, SelectionReport> outcome = select(request);
    if (outcome.isInvalid()) {
      throw outcome.getError().exception();
    }
    return outcome.get();
  }

  /** One selection over one moment of the registry. */
  private final class Selection {
    private final BackendRegistry.Snapshot backends;
    private final LatentPrefillRegistry.Snapshot registered;
    private final SelectionRequest request;
    private final PlatformPolicy policy;
    private final SelectionPlan plan;
    private final BackendValidator validator;

    private Selection(
        BackendRegistry.Snapshot backends,
        LatentPrefillRegistry.Snapshot registered,
        SelectionRequest request) {
      this.backends = backends;
      this.registered = registered;
      this.request = request;
      this.policy = policy(request.attention().device().platform());
      this.plan = policy.plan(request);
      this.validator = request.strictReference() ? REFERENCE : EVERYTHING;
    }

    private Validation<SelectionRefusal, SelectionReport> run() {
      AttentionConfig config = request.config();
      if (config.prefillBackend().isDefined() || config.decodeBackend().isDefined()) {
        return pair(config.prefillBackend(), config.decodeBackend());
      }
      Option<BackendName> named =
          plan.settled() ? Option.none() : config.backendOf(LayerKind.of(plan.asked().layer()));
      return named.isDefined() ? explicit(judge(named.get())) : automatic();
    }

    private Validation<SelectionRefusal, SelectionReport> explicit(Judgement named) {
      if (!named.valid()) {
        Seq<Candidate> alternatives =
            ranked().filter(j -> !j.backend().equals(named.backend())).map(this::candidate);
        return refusal(
            ErrorCode.INVALID_SELECTION,
            () -> RefusalText.explicit(named.backend().name(), named.reasons()),
            alternatives.prepend(candidate(named)));
      }
      return report(named, Source.EXPLICIT, Vector.of(candidate(named)), Vector.empty());
    }

    private Validation<SelectionRefusal, SelectionReport> automatic() {
      Seq<Judgement> judged = ranked();
      Seq<Candidate> candidates = judged.map(this::candidate);
      Option<Judgement> first = judged.find(Judgement::valid);
      if (first.isEmpty()) {
        return nobody(candidates);
      }
      return report(first.get(), plan.source(), candidates, warnings(judged, first.get()));
    }

    private Validation<SelectionRefusal, SelectionReport> pair(
        Option<BackendName> prefill, Option<BackendName> decode) {
      Validation<SelectionRefusal, Judgement> general = chosen(prefill);
      Validation<SelectionRefusal, Judgement> fast = chosen(decode);
      if (general.isInvalid()) {
        return Validation.invalid(general.getError());
      }
      if (fast.isInvalid()) {
        return Validation.invalid(fast.getError());
      }
      return pair(general.get(), fast.get(), decode.isDefined());
    }

    private Validation<SelectionRefusal, SelectionReport> pair(
        Judgement general, Judgement fast, boolean decodeNamed) {
      if (general.backend().equals(fast.backend())) {
        return report(general, Source.EXPLICIT, Vector.of(candidate(general)), Vector.empty());
      }
      Seq<Candidate> parts = Vector.of(candidate(general), candidate(fast));
      Validation<Seq<InvalidReason>, ? extends AttentionBackend<?>> made =
          pairing.pair(general.backend(), fast.backend());
      Judgement whole =
          made.isInvalid()
              ? Judgement.refused(fast.backend(), plan.asked(), made.getError())
              : Judgement.of(validator, made.get(), plan.asked());
      if (whole.valid()) {
        return report(whole, Source.EXPLICIT, parts.prepend(candidate(whole)), Vector.empty());
      }
      String why =
          RefusalText.incompatiblePair(fast.backend().name(), general.backend().name())
              + reasons(whole);
      if (!decodeNamed) {
        return report(general, Source.EXPLICIT, parts, Vector.of(why));
      }
      return refusal(
          made.isInvalid() ? ErrorCode.INVALID_COMPOSITION : ErrorCode.INVALID_SELECTION,
          () -> why,
          parts);
    }

    private String reasons(Judgement refused) {
      return " Reason: "
          + refused.reasons().map(r -> r.text() + " (" + r.seen() + ")").mkString("; ");
    }

    private Validation<SelectionRefusal, Judgement> chosen(Option<BackendName> name) {
      if (name.isDefined()) {
        Judgement named = judge(name.get());
        return named.valid()
            ? Validation.valid(named)
            : refusal(
                ErrorCode.INVALID_SELECTION,
                () -> RefusalText.explicit(named.backend().name(), named.reasons()),
                Vector.of(candidate(named)));
      }
      Seq<Judgement> judged = ranked();
      return judged
          .find(Judgement::valid)
          .map(Validation::<SelectionRefusal, Judgement>valid)
          .getOrElse(() -> nobody(judged.map(this::candidate)));
    }

    private <T> Validation<SelectionRefusal, T> nobody(Seq<Candidate> candidates) {
      return refusal(
          ErrorCode.NO_VALID_BACKEND,
          () ->
              RefusalText.automatic(plan.asked(), candidates)
                  + plan.notes().map(note -> " " + note).mkString(),
          candidates);
    }

    private Judgement judge(BackendName name) {
      return Judgement.of(
          validator, backends.find(name).getOrElseThrow(() -> unknown(name)), plan.asked());
    }

    /** The plan's candidates that are registered; a platform that is not there has no rows. */
    private Seq<Judgement> ranked() {
      return plan.order()
          .flatMap(backends::find)
          .map(backend -> Judgement.of(validator, backend, plan.asked()));
    }

    private Candidate candidate(Judgement judged) {
      int at = plan.order().indexOf(judged.backend().name());
      Candidate candidate = judged.candidate(Option.when(at >= 0, at + 1));
      return judged.reasons().exists(reason -> reason.code() == ReasonCode.LSE)
          ? candidate.advising(this::whoReturnsLogSumExp)
          : candidate;
    }

    private String whoReturnsLogSumExp() {
      Seq<BackendName> able =
          backends
              .having(Feature.LSE)
              .flatMap(backends::find)
              .filter(backend -> validator.validate(backend, plan.asked()).isValid())
              .map(AttentionBackend::name);
      return able.isEmpty()
          ? "no registered backend returns one for this layer"
          : "it is returned by " + able.mkString(", ");
    }

    private Seq<String> warnings(Seq<Judgement> judged, Judgement first) {
      Seq<BackendName> better =
          judged
              .takeWhile(j -> !j.valid())
              .filter(Judgement::precludedByBlockSize)
              .map(j -> j.backend().name());
      return plan.asked()
          .blockSize()
          .filter(size -> better.nonEmpty())
          .map(size -> RefusalText.precluded(size, better, first.backend().name()))
          .toVector();
    }

    private Validation<SelectionRefusal, SelectionReport> report(
        Judgement chosen, Source source, Seq<Candidate> candidates, Seq<String> warnings) {
      Validation<Seq<InvalidReason>, LatentPrefill> latentPrefill =
          policy.latentPrefill(chosen.backend().name(), plan.asked(), request.config(), registered);
      if (latentPrefill.isInvalid()) {
        return refusal(
            ErrorCode.INVALID_SELECTION,
            () -> latentPrefill.getError().map(InvalidReason::text).mkString("; "),
            candidates.map(candidate -> withoutPrefill(candidate, latentPrefill.getError())));
      }
      return Validation.valid(
          new SelectionReport(
              chosen.backend(),
              source,
              plan.asked().device(),
              chosen.extension(),
              chosen.versions(),
              latentPrefill.get().backend(),
              chosen.cacheType(),
              chosen.contract(),
              chosen.features().blockSizes(),
              plan.asked().layer().type().usesKvCache() ? chosen.blockSize() : Option.none(),
              chosen.graphSupport(),
              chosen.children(),
              candidates,
              Lazy.of(
                  () ->
                      plan.notes()
                          .appendAll(chosen.notes())
                          .appendAll(latentPrefill.get().notes())
                          .appendAll(
                              SettingRemarks.of(
                                  request.config(),
                                  plan.asked(),
                                  chosen.runs(),
                                  latentPrefill.get().backend()))
                          .appendAll(warnings))));
    }

    /** A layer whose prefills nobody runs has no use for a backend of its decodes. */
    private static Candidate withoutPrefill(Candidate decode, Seq<InvalidReason> reasons) {
      return decode.valid()
          ? new Candidate(decode.backend(), decode.priority(), false, reasons, decode.advice())
          : decode;
    }

    private <T> Validation<SelectionRefusal, T> refusal(
        ErrorCode code, Supplier<String> message, Seq<Candidate> candidates) {
      return Validation.invalid(new SelectionRefusal(code, Lazy.of(message), candidates));
    }

    private BifocalException unknown(BackendName name) {
      if (Vector.of(KnownBackend.values()).exists(known -> known.backend().equals(name))) {
        return BifocalException.of(
                ErrorCode.UNKNOWN_BACKEND, "Backend " + name + " must be registered before use")
            .withRemedy("bind it, or add the module of its platform to the class path");
      }
      Seq<String> known = inReferenceOrder(backends.names()).map(BackendName::value);
      return BifocalException.of(
              ErrorCode.UNKNOWN_BACKEND,
              "Unknown attention backend: '"
                  + name
                  + "'. Valid options are: "
                  + known.mkString(", "))
          .withRemedy(NearestName.advice(name.value(), known));
    }
  }

  private static Seq<BackendName> inReferenceOrder(Seq<BackendName> names) {
    Seq<BackendName> reference = Vector.of(KnownBackend.values()).map(KnownBackend::backend);
    return reference.filter(names::contains).appendAll(names.removeAll(reference));
  }
}
