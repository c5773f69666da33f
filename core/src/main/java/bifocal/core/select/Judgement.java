package bifocal.core.select;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.BackendValidator;
import bifocal.core.backend.Composed;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.KvContract;
import bifocal.core.backend.ReasonCode;
import bifocal.core.backend.ResolvedVariant;
import bifocal.core.backend.ResolvesVariants;
import bifocal.core.backend.StatedGraphSupport;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvScales;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Child;
import io.vavr.Lazy;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;

/**
 * One backend, judged for one request.
 *
 * @param reasons everything against it
 * @param features what it was accepted by; nothing when refused
 * @param contract the agreement about the cache; absent when refused or where there is no cache
 * @param leaves the backends that would run, each with the variant that serves its part
 */
record Judgement(
    AttentionBackend<?> backend,
    AttentionRequest asked,
    Seq<InvalidReason> reasons,
    FeatureSet features,
    boolean extension,
    Option<KvCacheSpec> contract,
    Lazy<Seq<Leaf>> leaves) {
  private static final String GROUP = "layer";

  static Judgement of(
      BackendValidator validator, AttentionBackend<?> backend, AttentionRequest asked) {
    Validation<Seq<InvalidReason>, BackendValidator.Accepted> accepted =
        validator.validate(backend, asked);
    return accepted.isInvalid()
        ? refused(backend, asked, accepted.getError())
        : accepted(backend, asked, accepted.get());
  }

  static Judgement refused(
      AttentionBackend<?> backend, AttentionRequest asked, Seq<InvalidReason> reasons) {
    return new Judgement(
        backend,
        asked,
        reasons,
        FeatureSet.NONE,
        false,
        Option.none(),
        Lazy.of(() -> leaves(backend, asked)));
  }

  private static Judgement accepted(
      AttentionBackend<?> backend, AttentionRequest asked, BackendValidator.Accepted accepted) {
    Seq<Leaf> leaves = leaves(backend, asked);
    Validation<Seq<InvalidReason>, Option<KvCacheSpec>> contract =
        asked.layer().type().usesKvCache()
            ? contract(backend, asked, accepted.features(), leaves).map(Option::some)
            : Validation.valid(Option.none());
    return contract.isInvalid()
        ? refused(backend, asked, contract.getError())
        : new Judgement(
            backend,
            asked,
            Vector.empty(),
            accepted.features(),
            accepted.extension(),
            contract.get(),
            Lazy.of(() -> leaves));
  }

  boolean valid() {
    return reasons.isEmpty();
  }

  /** Whether a pinned block size is all that speaks against the backend. */
  boolean precludedByBlockSize() {
    return reasons.size() == 1 && reasons.head().code() == ReasonCode.BLOCK_SIZE;
  }

  Candidate candidate(Option<Integer> priority) {
    return new Candidate(backend.name(), priority, valid(), reasons, Lazy.of(this::hint));
  }

  /** What would have to change, and how the versions came about. */
  private Option<String> hint() {
    Seq<String> hints = Hints.of(backend, reasons).appendAll(notes());
    return Option.when(hints.nonEmpty(), () -> hints.mkString("; "));
  }

  /** What is worth knowing about the versions that would run. */
  Seq<String> notes() {
    return leaves
        .get()
        .flatMap(Leaf::notes)
        .distinct()
        .appendAll(
            Option.when(
                valid() && cacheType() != asked.layer().kvCacheDtype(),
                () ->
                    "Using "
                        + cacheType()
                        + " KV cache format for "
                        + backend.name()
                        + " backend."));
  }

  /** The type of the cache: as it was asked for, or what the backend makes of it. */
  KvCacheDtype cacheType() {
    return cacheType(backend, asked);
  }

  private static KvCacheDtype cacheType(AttentionBackend<?> backend, AttentionRequest asked) {
    return backend instanceof ResolvesVariants resolving
        ? resolving.variant(asked).cacheType().getOrElse(asked.layer().kvCacheDtype())
        : asked.layer().kvCacheDtype();
  }

  Seq<SelectionReport.KernelVersion> versions() {
    return leaves
        .get()
        .flatMap(
            leaf ->
                leaf.variant()
                    .map(ResolvedVariant::version)
                    .filter(version -> !version.isEmpty())
                    .map(v -> new SelectionReport.KernelVersion(leaf.backend().name(), v)))
        .distinct();
  }

  /** The backend and everything that would run inside it. */
  Seq<BackendName> runs() {
    return leaves.get().map(leaf -> leaf.backend().name()).prepend(backend.name());
  }

  Seq<BackendName> children() {
    return backend instanceof Composed pair
        ? Vector.of(pair.childA().name(), pair.childB().name())
        : Vector.empty();
  }

  /** The pinned size, else the one that the first of its parts wants, else the contract's. */
  Option<Integer> blockSize() {
    return asked
        .blockSize()
        .orElse(() -> preferredBlockSize(backend, asked))
        .orElse(() -> contract.map(KvCacheSpec::blockSize));
  }

  GraphSupport graphSupport() {
    return graphSupport(backend, asked);
  }

  /** A backend that is not composed, with what it is asked inside the composites around it. */
  record Leaf(
      AttentionBackend<?> backend, AttentionRequest asked, Option<ResolvedVariant> variant) {
    static Leaf of(AttentionBackend<?> backend, AttentionRequest asked) {
      return new Leaf(
          backend,
          asked,
          backend instanceof ResolvesVariants resolving
              ? Option.some(resolving.variant(asked))
              : Option.none());
    }

    private Seq<String> notes() {
      Seq<String> remarks =
          backend instanceof ResolvesVariants resolving ? resolving.remarks(asked) : Vector.empty();
      return variant.map(ResolvedVariant::notes).getOrElse(Vector.empty()).appendAll(remarks);
    }
  }

  private static Seq<Leaf> leaves(AttentionBackend<?> backend, AttentionRequest asked) {
    return backend instanceof Composed pair
        ? leaves(pair.childA(), pair.asked(Child.A, asked))
            .appendAll(leaves(pair.childB(), pair.asked(Child.B, asked)))
        : Vector.of(Leaf.of(backend, asked));
  }

  /** Whoever touches the cache is a party: the general child writes, and every child reads. */
  private static Validation<Seq<InvalidReason>, KvCacheSpec> contract(
      AttentionBackend<?> backend, AttentionRequest asked, FeatureSet features, Seq<Leaf> leaves) {
    KvContract.Party whole = new KvContract.Party(backend.name().value(), features);
    Seq<KvContract.Party> readers =
        leaves.size() == 1
            ? Vector.of(whole)
            : leaves
                .map(leaf -> KvContract.Party.reader(leaf.backend(), leaf.asked()))
                .prepend(whole);
    KvContract.Party writer =
        leaves.size() == 1
            ? whole
            : KvContract.Party.writer(leaves.head().backend(), leaves.head().asked());
    return KvContract.resolve(
        writer,
        readers,
        asked.layer().cachedAs(cacheType(backend, asked)),
        KvScales.ONE,
        asked.blockSize().orElse(() -> preferredBlockSize(backend, asked)));
  }

  private static Option<Integer> preferredBlockSize(
      AttentionBackend<?> backend, AttentionRequest asked) {
    return backend instanceof ResolvesVariants resolving
        ? resolving.variant(asked).preferredBlockSize()
        : Option.none();
  }

  private static GraphSupport graphSupport(AttentionBackend<?> backend, AttentionRequest asked) {
    LayerGroup group = LayerGroup.of(GROUP, asked.layer());
    return switch (backend) {
      case Composed pair ->
          graphSupport(pair.childA(), pair.asked(Child.A, asked))
              .weakest(graphSupport(pair.childB(), pair.asked(Child.B, asked)))
              .weakest(pair.policy().graphSupport(group));
      case ResolvesVariants resolving ->
          StatedGraphSupport.ofVariant(backend, resolving.variant(asked).graphSupport());
      default -> StatedGraphSupport.of(backend, group);
    };
  }
}
