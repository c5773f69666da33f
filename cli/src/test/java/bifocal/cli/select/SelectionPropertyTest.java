package bifocal.cli.select;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.composite.CompositeBackends;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.BackendRegistry;
import bifocal.core.backend.BackendValidator;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.Composed;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.Execution;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.backend.InvalidReason;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayouts;
import bifocal.core.device.Platform;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.route.Child;
import bifocal.core.select.Candidate;
import bifocal.core.select.SelectionRefusal;
import bifocal.core.select.SelectionReport;
import bifocal.core.select.SelectionRequest;
import bifocal.core.tensor.DType;
import bifocal.routing.MMPrefixAttentionRouting;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What holds of every selection, over tuples drawn by chance. */
class SelectionPropertyTest {
  private static final int TUPLES = Boolean.getBoolean("bifocal.full") ? 100_000 : 2_000;
  private static final long SEED = Long.getLong("bifocal.seed", 20_261_129L);
  private static final BackendValidator VALIDATOR =
      new BackendValidator(BackendValidator.Scope.EXECUTION);
  private static final BackendValidator REFERENCE =
      new BackendValidator(BackendValidator.Scope.REFERENCE);

  private static void forAll(Platform platform, BiConsumer<RandomLayers, SelectionRequest> check) {
    Asking.requireInstalled(platform);
    RandomLayers layers = new RandomLayers(platform, SEED);
    for (int i = 0; i < TUPLES; i++) {
      SelectionRequest request = layers.next();
      try {
        check.accept(layers, request);
      } catch (AssertionError | RuntimeException e) {
        throw new AssertionError(
            "seed " + SEED + ", tuple " + i + ": " + e.getMessage() + " for " + request, e);
      }
    }
  }

  @ParameterizedTest
  @EnumSource(Platform.class)
  void theChosenValidatesAndNobodyBeforeItDoes(Platform platform) {
    forAll(
        platform,
        (layers, request) -> {
          Validation<SelectionRefusal, SelectionReport> outcome = Asking.SELECTOR.select(request);
          Seq<Candidate> before =
              outcome.isInvalid()
                  ? outcome.getError().candidates()
                  : outcome
                      .get()
                      .candidates()
                      .takeUntil(c -> c.backend().equals(outcome.get().backend()));
          assertThat(before.filter(c -> c.valid() || c.reasons().isEmpty())).isEmpty();
          if (outcome.isValid()) {
            AttentionRequest asked = Asking.SELECTOR.policy(platform).plan(request).asked();
            BackendValidator validator = request.strictReference() ? REFERENCE : VALIDATOR;
            assertThat(validator.validate(outcome.get().chosen(), asked).isValid()).isTrue();
          }
        });
  }

  @ParameterizedTest
  @EnumSource(Platform.class)
  void whatIsNamedIsTakenOrRefusedWithReasons(Platform platform) {
    Seq<BackendName> names = Asking.SELECTOR.registry().snapshot().names();
    forAll(
        platform,
        (layers, request) -> {
          BackendName name = layers.pick(names.toJavaArray(BackendName[]::new));
          Validation<SelectionRefusal, SelectionReport> outcome =
              Asking.SELECTOR.check(
                  Asking.SELECTOR.registry().snapshot().find(name).get(), request);
          if (outcome.isValid()) {
            assertThat(outcome.get().backend()).isEqualTo(name);
          } else {
            assertThat(outcome.getError().candidates().head().backend()).isEqualTo(name);
            assertThat(outcome.getError().candidates().head().reasons()).isNotEmpty();
          }
        });
  }

  @ParameterizedTest
  @EnumSource(Platform.class)
  void aCompositeValidatesIffItsPartsDo(Platform platform) {
    BackendRegistry.Snapshot registry = Asking.SELECTOR.registry().snapshot();
    Seq<AttentionBackend<?>> pairs = pairs(registry);
    forAll(
        platform,
        (layers, request) -> {
          AttentionRequest asked = request.asked();
          if (asked.layer().type() == AttentionType.ENCODER
              || asked.layer().type() == AttentionType.ENCODER_ONLY) {
            return;
          }
          AttentionBackend<?> pair = layers.pick(pairs.toJavaArray(AttentionBackend[]::new));
          Composed composed = (Composed) pair;
          boolean parts =
              serves(composed.childA(), composed.asked(Child.A, asked))
                  && serves(composed.childB(), composed.asked(Child.B, asked));
          boolean whole = valid(pair, asked);
          if (whole) {
            assertThat(parts).as("parts of %s", pair).isTrue();
          } else if (parts && knowTheCacheByName(composed, asked)) {
            assertThat(meet(composed, asked)).as("cache of %s", pair).isFalse();
          }
        });
  }

  /** Whether some child lists the cache as it is asked for; else the pair does not, either. */
  private static boolean knowTheCacheByName(Composed pair, AttentionRequest asked) {
    return valid(pair.childA(), pair.asked(Child.A, asked))
        || valid(pair.childB(), pair.asked(Child.B, asked));
  }

  /** Whether children that serve a layer each also agree on one cache for it. */
  private static boolean meet(Composed pair, AttentionRequest asked) {
    FeatureSet a = pair.childA().capabilities(pair.asked(Child.A, asked)).all();
    FeatureSet b = pair.childB().capabilities(pair.asked(Child.B, asked)).all();
    boolean layout =
        a.kvLayouts().exists(l -> b.kvLayouts().exists(r -> r.name().equals(l.name())));
    boolean block =
        asked
            .blockSize()
            .map(size -> a.blockSizes().intersect(b.blockSizes()).kernelBlockFor(size).isDefined())
            .getOrElse(!a.blockSizes().intersect(b.blockSizes()).isEmpty());
    return layout && block;
  }

  private static Seq<AttentionBackend<?>> pairs(BackendRegistry.Snapshot registry) {
    Seq<AttentionBackend<?>> plain =
        registry
            .backends()
            .filter(backend -> !(backend instanceof Composed))
            .filter(backend -> !backend.capabilities().all().has(Feature.MLA));
    return plain.flatMap(a -> plain.filter(b -> a != b).flatMap(b -> pair(a, b)));
  }

  private static <MA extends AttentionMetadata, MB extends AttentionMetadata>
      Option<AttentionBackend<?>> pair(AttentionBackend<MA> a, AttentionBackend<MB> b) {
    Validation<Seq<InvalidReason>, ? extends AttentionBackend<?>> made =
        CompositeBackends.createCompositeBackend(a, b, new MMPrefixAttentionRouting());
    return made.isValid() ? Option.some(made.get()) : Option.none();
  }

  /** Each of a feature set's properties with more in it than before. */
  private static final Seq<FeatureSet> MORE =
      Vector.of(Feature.values())
          .removeAll(Vector.of(Feature.MLA, Feature.SPARSE))
          .map(feature -> FeatureSet.NONE.withFeatures(feature))
          .appendAll(
              Vector.of(
                  FeatureSet.NONE.withDtypes(DType.values()),
                  FeatureSet.NONE.withKvCacheDtypes(KvCacheDtype.values()),
                  FeatureSet.NONE.withHeadSizes(HeadSizes.exactly(16, 33, 64, 128, 576)),
                  FeatureSet.NONE.withBlockSizes(BlockSizes.exactly(8, 24, 128)),
                  FeatureSet.NONE.withTypes(AttentionType.values()),
                  FeatureSet.NONE.withImageMasks(ImageMask.OVERRIDE, ImageMask.CLAMP_BOTH),
                  FeatureSet.NONE.withKvLayouts(KvLayouts.NHD, KvLayouts.HND),
                  FeatureSet.NONE.withDevices(DeviceSupport.on(Platform.values()))));

  @ParameterizedTest
  @EnumSource(Platform.class)
  void oneMoreCapabilityNeverShrinksWhatIsValid(Platform platform) {
    Seq<AttentionBackend<?>> backends = Asking.SELECTOR.registry().snapshot().backends();
    forAll(
        platform,
        (layers, request) -> {
          AttentionRequest asked = request.asked();
          Seq<AttentionBackend<?>> valid = backends.filter(backend -> valid(backend, asked));
          if (valid.nonEmpty()) {
            AttentionBackend<?> one = valid.get(Math.floorMod(request.hashCode(), valid.size()));
            MORE.forEach(
                more ->
                    assertThat(valid(new Abler<>(one, more), asked))
                        .as("%s with %s", one, more)
                        .isTrue());
          }
        });
  }

  @Test
  void whatValidatesOnTheCpuIsAcceptedByBuilderAndImpl() {
    Seq<AttentionBackend<?>> executed =
        Asking.SELECTOR
            .registry()
            .snapshot()
            .backends()
            .filter(b -> b.execution().status() == Execution.Status.NATIVE);
    forAll(
        Platform.CPU,
        (layers, request) -> {
          for (AttentionBackend<?> backend : executed) {
            Validation<SelectionRefusal, SelectionReport> outcome =
                Asking.SELECTOR.check(backend, request.strictly(false));
            if (outcome.isValid() && outcome.get().contract().isDefined()) {
              accept(backend, request.asked().layer(), outcome.get().contract().get());
            }
          }
        });
  }

  private static void accept(
      AttentionBackend<?> backend, AttentionLayerSpec layer, KvCacheSpec cache) {
    boolean weights = layer.sinks() || layer.alibi();
    if (weights) {
      return;
    }
    try (AttentionMetadataBuilder<?> builder =
            backend.createBuilder(LayerGroup.of("layer", layer), cache);
        AttentionImpl<?> impl = backend.createImpl(layer, LayerParameters.NONE, cache)) {
      assertThat(builder).isNotNull();
      assertThat(impl).isNotNull();
    } catch (Exception e) {
      throw new AssertionError(backend + " refuses what validates: " + e.getMessage(), e);
    }
  }

  /** Whether a child serves a layer; a cache by its own name and as {@code auto} is the same. */
  private static boolean serves(AttentionBackend<?> child, AttentionRequest asked) {
    return valid(child, asked)
        || (asked.layer() instanceof AttentionLayerSpec.Dense dense
            && KvCacheDtype.AUTO.resolve(dense.dtype()) == dense.kvCacheDtype()
            && valid(
                child,
                new AttentionRequest(
                    dense.withKvCacheDtype(KvCacheDtype.AUTO),
                    asked.device(),
                    asked.blockSize(),
                    asked.deployment())));
  }

  private static boolean valid(AttentionBackend<?> backend, AttentionRequest asked) {
    return VALIDATOR.validate(backend, asked).isValid();
  }

  /** A backend that can do one thing more. */
  private record Abler<M extends AttentionMetadata>(AttentionBackend<M> backend, FeatureSet more)
      implements AttentionBackend<M> {
    @Override
    public BackendName name() {
      return backend.name();
    }

    @Override
    public Capabilities capabilities() {
      return abler(backend.capabilities());
    }

    @Override
    public Capabilities capabilities(AttentionRequest request) {
      return abler(backend.capabilities(request));
    }

    private Capabilities abler(Capabilities capabilities) {
      return new Capabilities(capabilities.reference(), capabilities.extensions().union(more));
    }

    @Override
    public Option<InvalidReason> checkCombination(AttentionRequest request) {
      return backend.checkCombination(request);
    }

    @Override
    public Execution execution() {
      return backend.execution();
    }

    @Override
    public AttentionMetadataBuilder<M> createBuilder(LayerGroup group, KvCacheSpec cache) {
      return backend.createBuilder(group, cache);
    }

    @Override
    public AttentionImpl<M> createImpl(
        AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
      return backend.createImpl(layer, parameters, cache);
    }
  }
}
