package bifocal.composite;

import static bifocal.composite.TestBatch.lens;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.HostLaunchContext;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.route.Child;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What a composite itself allocates, measured with children that allocate nothing. */
class AllocationTest {
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private static final CommonAttentionMetadata BATCH =
      TestBatch.of(lens(3, 1, 2, 1), 7, 9, 2, 5).images(lens(), lens(), lens(0, 1), lens()).build();
  private static final int WARM_UP = 20_000;
  private static final int RUNS = 1_000;

  private record Nothing() implements AttentionMetadata {}

  /** A child that does nothing at all. */
  private record Silent(BackendName name) implements AttentionBackend<Nothing> {
    private static final Nothing NOTHING = new Nothing();

    @Override
    public Capabilities capabilities() {
      return Capabilities.of(SummingBackend.PLAIN);
    }

    @Override
    public AttentionMetadataBuilder<Nothing> createBuilder(LayerGroup group, KvCacheSpec cache) {
      return (StepContext step, LayerGroup of, CommonAttentionMetadata batch) -> NOTHING;
    }

    @Override
    public AttentionImpl<Nothing> createImpl(
        AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
      return new SilentImpl();
    }
  }

  private record SilentImpl() implements AttentionImpl<Nothing> {
    @Override
    public void writeKv(
        LaunchContext launch, KvInput input, KvCacheView cache, SlotMapping slots) {}

    @Override
    public void forward(
        LaunchContext launch,
        TensorView q,
        KvCacheView cache,
        Nothing metadata,
        AttentionOutput output) {}
  }

  static Stream<Named<FakePolicy>> routes() {
    return Stream.of(
        Named.of("to child A", FakePolicy.always(Child.A)),
        Named.of("to child B", FakePolicy.always(Child.B)),
        Named.of("divided", FakePolicy.byRequest(r -> r % 2 == 0 ? Child.A : Child.B)));
  }

  private static TestHost<CompositeMetadata<Nothing, Nothing>> host(FakePolicy policy) {
    return new TestHost<>(
        CompositeBackends.createCompositeBackendOrThrow(
            new Silent(new BackendName("ONE")), new Silent(new BackendName("TWO")), policy));
  }

  @ParameterizedTest
  @MethodSource("routes")
  void forwardAllocatesNothing(FakePolicy policy) {
    var host = host(policy);
    LaunchContext launch = new HostLaunchContext(AttentionObserver.NONE);
    TensorView q = TestHost.queries(BATCH);
    AttentionOutput output = TestHost.Result.poisoned(BATCH).output();
    try (Workspace.Step step = host.openStep()) {
      var metadata = host.build(step, BATCH);

      long bytes = bytesPerRun(() -> host.impl.forward(launch, q, host.cache, metadata, output));

      assertThat(bytes).isZero();
    }
  }

  @ParameterizedTest
  @MethodSource("routes")
  void buildAllocatesLittle(FakePolicy policy) {
    var host = host(policy);

    long bytes =
        bytesPerRun(
            () -> {
              try (Workspace.Step step = host.openStep()) {
                host.build(step, BATCH);
              }
              host.launch.copies.clear();
            });

    assertThat(bytes).isLessThanOrEqualTo(8 * 1024);
  }

  /** The least of several measurements: a compilation on this thread may add to one of them. */
  private static long bytesPerRun(Runnable run) {
    for (int i = 0; i < WARM_UP; i++) {
      run.run();
    }
    long least = Long.MAX_VALUE;
    for (int attempt = 0; attempt < 5; attempt++) {
      long before = THREADS.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < RUNS; i++) {
        run.run();
      }
      least = Math.min(least, (THREADS.getCurrentThreadAllocatedBytes() - before) / RUNS);
    }
    return least;
  }
}
