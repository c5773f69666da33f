package bifocal.cpu.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import bifocal.composite.CompositeBackends;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvScales;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.cpu.attention.CpuAttnBackend;
import bifocal.cpu.attention.CpuRuntime;
import bifocal.cpu.attention.FlexAttentionBackend;
import bifocal.routing.MMPrefixAttentionRouting;
import io.vavr.control.Option;
import java.util.function.Supplier;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A child that throws harms one step, and none after it. */
final class ThrowingChildTest {
  private static final int[][] IMAGE = {{3, 14}, {}};

  /** Where a child throws. */
  enum Place {
    BUILD,
    WRITE,
    FORWARD,
    AFTER_FORWARD
  }

  /** What a child throws. */
  enum Kind {
    TYPED(() -> BifocalException.of(ErrorCode.NATIVE_FAILED, "a child failed")),
    RUNTIME(() -> new IllegalStateException("a child failed")),
    ERROR(() -> new OutOfMemoryError("a child failed")),
    OVERFLOW(StackOverflowError::new);

    private final Supplier<Throwable> thrown;

    Kind(Supplier<Throwable> thrown) {
      this.thrown = thrown;
    }
  }

  @ParameterizedTest
  @EnumSource(Place.class)
  void theNextStepIsExactlyAsIfNothingHadBeen(Place place) {
    for (Kind kind : Kind.values()) {
      CpuRuntime runtime = CpuRuntime.ofThisJvm();
      Failing<?> general = new Failing<>(new FlexAttentionBackend(runtime), place, kind);
      Failing<?> fast = new Failing<>(new CpuAttnBackend(runtime), place, kind);
      for (Failing<?> failing : new Failing<?>[] {general, fast}) {
        if (place == Place.WRITE && failing == fast) {
          continue; // It never writes.
        }
        try (SmallEngine engine = engine(general, fast);
            SmallEngine untouched = engine(general, fast)) {
          failThenRun(engine, untouched, failing, kind);
        }
      }
    }
  }

  private static void failThenRun(
      SmallEngine engine, SmallEngine untouched, Failing<?> failing, Kind kind) {
    LaunchContext launch = SmallEngine.launch();
    CommonAttentionMetadata batch = engine.admit(IMAGE, 40, 7);
    int free = engine.blocks.free();
    failing.armed = true;
    Throwable seen = catchThrowable(() -> engine.run(launch, batch));
    failing.armed = false;
    assertThat(seen).as("%s thrown", kind).hasSameClassAs(kind.thrown.get());
    assertThat(engine.blocks.free()).as("blocks").isEqualTo(free);

    CommonAttentionMetadata same = untouched.admit(IMAGE, 40, 7);
    engine.run(launch, batch);
    untouched.run(launch, same);
    assertThat(engine.isRight(batch)).as("the same step again").isTrue();
    assertThat(engine.cacheIs(untouched.cacheBytes())).as("the cache, bit for bit").isTrue();
    assertThat(engine.outputIs(untouched)).as("the output, bit for bit").isTrue();

    CommonAttentionMetadata next = engine.admit(1, 1);
    engine.run(launch, next);
    assertThat(engine.isRight(next)).as("the step after").isTrue();
  }

  private static <A extends AttentionMetadata, B extends AttentionMetadata> SmallEngine engine(
      AttentionBackend<A> general, AttentionBackend<B> fast) {
    return new SmallEngine(
        CompositeBackends.createCompositeBackendOrThrow(
            general, fast, new MMPrefixAttentionRouting()),
        SmallEngine.LAYER,
        KvScales.ONE,
        20);
  }

  /** A backend that throws at one place, when it is told to. */
  private static final class Failing<M extends AttentionMetadata> implements AttentionBackend<M> {
    private final AttentionBackend<M> right;
    private final Place place;
    private final Kind kind;
    private boolean armed;

    Failing(AttentionBackend<M> right, Place place, Kind kind) {
      this.right = right;
      this.place = place;
      this.kind = kind;
    }

    private void at(Place reached) {
      if (armed && reached == place) {
        throw Failing.<RuntimeException>unchecked(kind.thrown.get());
      }
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> T unchecked(Throwable thrown) throws T {
      throw (T) thrown;
    }

    @Override
    public BackendName name() {
      return right.name();
    }

    @Override
    public Capabilities capabilities() {
      return right.capabilities();
    }

    @Override
    public Capabilities capabilities(AttentionRequest request) {
      return right.capabilities(request);
    }

    @Override
    public Option<InvalidReason> checkCombination(AttentionRequest request) {
      return right.checkCombination(request);
    }

    @Override
    public GraphSupport graphSupport(LayerGroup group) {
      return right.graphSupport(group);
    }

    @Override
    public WorkspacePlan workspace(LayerGroup group, KvCacheSpec cache, BatchLimits limits) {
      return right.workspace(group, cache, limits);
    }

    @Override
    public AttentionMetadataBuilder<M> createBuilder(LayerGroup group, KvCacheSpec cache) {
      AttentionMetadataBuilder<M> builder = right.createBuilder(group, cache);
      return (step, built, batch) -> {
        at(Place.BUILD);
        return builder.build(step, built, batch);
      };
    }

    @Override
    public AttentionImpl<M> createImpl(
        AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
      AttentionImpl<M> impl = right.createImpl(layer, parameters, cache);
      return new AttentionImpl<>() {
        @Override
        public void writeKv(
            LaunchContext launch, KvInput input, KvCacheView view, SlotMapping slots) {
          at(Place.WRITE);
          impl.writeKv(launch, input, view, slots);
        }

        @Override
        public void forward(
            LaunchContext launch,
            TensorView q,
            KvCacheView view,
            M metadata,
            AttentionOutput output) {
          at(Place.FORWARD);
          impl.forward(launch, q, view, metadata, output);
          at(Place.AFTER_FORWARD);
        }

        @Override
        public void forwardUncached(
            LaunchContext launch, TensorView q, KvInput kv, M metadata, AttentionOutput output) {
          impl.forwardUncached(launch, q, kv, metadata, output);
        }

        @Override
        public void close() {
          impl.close();
        }
      };
    }
  }
}
