package bifocal.reference.shadow;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendValidator;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HostLaunchContext;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.device.DeviceProfile;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.reference.HostTensor;
import bifocal.reference.ReferenceBackend;
import io.vavr.collection.HashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Two requests, of 2 queries after 3 keys and of 3 queries, through a shadowed backend. */
class ShadowBackendTest {
  private static final int HEADS = 2;
  private static final int HEAD_SIZE = 4;
  private static final int TOKENS = 5;
  private static final Dense LAYER =
      Dense.decoder(HEADS, 1, HEAD_SIZE, DType.FP32, AttentionMask.CAUSAL);
  private static final LayerGroup GROUP = LayerGroup.of("all", LAYER);
  private static final KvCacheSpec SPEC =
      new KvCacheSpec(
          KvLayouts.NHD, KvCacheDtype.FLOAT32, 4, 1, HEAD_SIZE, HEAD_SIZE, KvScales.ONE);
  private static final ReferenceBackend REFERENCE = ReferenceBackend.over(KvLayouts.NHD);
  private static final AttentionRequest REQUEST =
      AttentionRequest.of(
          LAYER.withMask(AttentionMask.CAUSAL.withImages(ImageMask.OVERRIDE)),
          new DeviceProfile.Cpu(DeviceProfile.CpuIsa.GENERIC, HashSet.empty(), true));

  private final Arena arena = Arena.ofConfined();
  private final List<ShadowComparison> compared = new ArrayList<>();
  private final List<RuntimeException> failed = new ArrayList<>();
  private final ShadowListener listener =
      new ShadowListener() {
        @Override
        public void compared(ShadowComparison comparison) {
          compared.add(comparison);
        }

        @Override
        public void failed(long step, LayerGroup group, RuntimeException failure) {
          failed.add(failure);
        }
      };

  @AfterEach
  void release() {
    arena.close();
  }

  @Test
  void equalShadowDiffersNowhere() {
    run(ShadowBackend.of(REFERENCE, skewed(out -> {}), listener));
    assertThat(compared).hasSize(1);
    assertThat(compared.getFirst().agreement().error()).isZero();
    assertThat(compared.getFirst().agreement().compared()).isEqualTo(TOKENS * HEADS);
    assertThat(compared.getFirst().worst().isEmpty()).isTrue();
  }

  @Test
  void worstQueryTokenAndHeadAreFoundInTheirRequest() {
    AttentionOutput alone = run(REFERENCE);
    run(
        ShadowBackend.of(
            REFERENCE,
            skewed(
                out -> {
                  add(out, 1, 0, 0.01f);
                  add(out, 4, 1, 0.25f);
                }),
            listener));
    ShadowComparison comparison = compared.getFirst();
    assertThat(comparison.step()).isEqualTo(7);
    assertThat(comparison.worst().get()).isEqualTo(new ShadowComparison.Place(1, 2, 1));
    double squares = 0;
    for (int row = 0; row < TOKENS; row++) {
      for (int head = 0; head < HEADS; head++) {
        squares += square(alone, row, head);
      }
    }
    double scale = Math.max(Math.sqrt(square(alone, 4, 1)), Math.sqrt(squares / (TOKENS * HEADS)));
    assertThat(comparison.agreement().error()).isCloseTo(0.25 / scale, within(1e-6));
  }

  @Test
  void primaryAloneIsTheResult() {
    AttentionOutput alone = run(REFERENCE);
    AttentionOutput shadowed =
        run(ShadowBackend.of(REFERENCE, skewed(out -> add(out, 0, 0, 100)), listener));
    assertThat(bytes(shadowed)).isEqualTo(bytes(alone));
    assertThat(compared.getFirst().agreement().error()).isGreaterThan(1);
  }

  @Test
  void rowThatTheShadowLeavesOutIsInfinitelyWrong() {
    run(ShadowBackend.of(REFERENCE, skewed(out -> add(out, 3, 1, Float.NaN)), listener));
    assertThat(compared.getFirst().agreement().error()).isInfinite();
    assertThat(compared.getFirst().worst().get()).isEqualTo(new ShadowComparison.Place(1, 1, 1));
  }

  @Test
  void shadowThatThrowsIsHeardOfAndChangesNothing() {
    AttentionOutput alone = run(REFERENCE);
    AttentionOutput shadowed =
        run(
            ShadowBackend.of(
                REFERENCE,
                skewed(
                    out -> {
                      throw new IllegalStateException("broken");
                    }),
                listener));
    assertThat(failed).singleElement().satisfies(e -> assertThat(e).hasMessage("broken"));
    assertThat(compared).isEmpty();
    assertThat(bytes(shadowed)).isEqualTo(bytes(alone));
  }

  @Test
  void layerThatTheShadowCannotServeIsRefused() {
    FeatureSet without = REFERENCE.capabilities().all().withImageMasks();
    AttentionBackend<?> narrow =
        ShadowBackend.of(
            REFERENCE, new Skewed(REFERENCE, Capabilities.of(without), out -> {}), listener);
    assertThat(reasons(narrow)).contains("partial multimodal token full attention not supported");
    assertThat(reasons(ShadowBackend.of(REFERENCE, skewed(out -> {}), listener))).isEmpty();
  }

  private static List<String> reasons(AttentionBackend<?> backend) {
    Seq<InvalidReason> none = Vector.empty();
    return new BackendValidator(BackendValidator.Scope.EXECUTION)
        .validate(backend, REQUEST)
        .fold(reasons -> reasons, accepted -> none)
        .map(InvalidReason::text)
        .toJavaList();
  }

  private Skewed skewed(Consumer<AttentionOutput> skew) {
    return new Skewed(REFERENCE, REFERENCE.capabilities(), skew);
  }

  private static void add(AttentionOutput output, int row, int head, float number) {
    HostTensor out = HostTensor.over(output.out());
    out.put(out.at(row, head, 0) + number, row, head, 0);
  }

  private static double square(AttentionOutput output, int row, int head) {
    double squares = 0;
    for (int d = 0; d < HEAD_SIZE; d++) {
      double number = HostTensor.over(output.out()).at(row, head, d);
      squares += number * number;
    }
    return squares;
  }

  private static byte[] bytes(AttentionOutput output) {
    return output.out().data().toArray(ValueLayout.JAVA_BYTE);
  }

  /** Writes all keys, then runs one step. */
  private <M extends AttentionMetadata> AttentionOutput run(AttentionBackend<M> backend) {
    KvCacheView cache = KvCacheView.wrap(arena.allocate(5 * SPEC.blockBytes(), 64), SPEC);
    LaunchContext launch = new HostLaunchContext(AttentionObserver.NONE);
    Random random = new Random(3);
    WorkspacePlan plan = backend.workspace(GROUP, SPEC, new BatchLimits(2, TOKENS, 5));
    TensorView out = random(random, TOKENS, HEADS, HEAD_SIZE);
    TensorView q = random(random, TOKENS, HEADS, HEAD_SIZE);
    try (AttentionImpl<M> impl = backend.createImpl(LAYER, LayerParameters.NONE, SPEC);
        AttentionMetadataBuilder<M> builder = backend.createBuilder(GROUP, SPEC);
        Workspace workspace = Workspace.wrap(arena.allocate(plan.totalBytes(1), 256), plan, 1);
        Workspace.Step step = workspace.openStep()) {
      SlotMapping slots = new SlotMapping(longs(4, 5, 6, 7, 8, 16, 17, 18));
      impl.writeKv(
          launch,
          new KvInput.Dense(random(random, 8, 1, HEAD_SIZE), random(random, 8, 1, HEAD_SIZE)),
          cache,
          slots);
      M metadata = builder.build(new StepContext(launch, step, 7), GROUP, batch());
      AttentionOutput output = AttentionOutput.of(out);
      impl.forward(launch, q, cache, metadata, output);
      return output;
    }
  }

  private CommonAttentionMetadata batch() {
    MemorySegment table = arena.allocateFrom(ValueLayout.JAVA_INT, 1, 2, 4, 0);
    return CommonAttentionMetadata.builder(
            new int[] {0, 2, 5},
            new int[] {5, 3},
            TensorView.ofHost(table, DType.INT32, 2, 2),
            new SlotMapping(longs(7, 8, 16, 17, 18)))
        .build();
  }

  private TensorView longs(long... values) {
    return TensorView.ofHost(
        arena.allocateFrom(ValueLayout.JAVA_LONG, values), DType.INT64, values.length);
  }

  private TensorView random(Random random, long rows, long heads, long headSize) {
    float[] numbers = new float[(int) (rows * heads * headSize)];
    for (int i = 0; i < numbers.length; i++) {
      numbers[i] = (float) random.nextGaussian();
    }
    return TensorView.ofHost(
        arena.allocateFrom(ValueLayout.JAVA_FLOAT, numbers), DType.FP32, rows, heads, headSize);
  }
}
