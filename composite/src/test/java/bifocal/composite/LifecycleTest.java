package bifocal.composite;

import static bifocal.composite.TestBatch.lens;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.composite.SummingBackend.Journal;
import bifocal.composite.SummingBackend.Metadata;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayout;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerParameters;
import bifocal.core.route.Child;
import bifocal.core.tensor.DType;
import bifocal.core.workspace.Workspace;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;

/** Who makes children's builders and implementations, who closes them, and what failures leave. */
class LifecycleTest {
  private final Journal journal = new Journal();
  private final SummingBackend general = new SummingBackend("GENERAL", journal);
  private final SummingBackend fast = new SummingBackend("FAST", journal);
  private final AttentionBackend<CompositeMetadata<Metadata, Metadata>> composite =
      CompositeBackends.createCompositeBackendOrThrow(general, fast, FakePolicy.imagesToA());

  @Test
  void eachChildIsMadeOncePerGroupAndLayer() {
    composite.createBuilder(TestHost.GROUP, TestHost.CACHE);
    composite.createImpl(TestHost.LAYER, LayerParameters.NONE, TestHost.CACHE);

    assertThat(journal.events)
        .containsExactly(
            "GENERAL creates builder",
            "FAST creates builder",
            "GENERAL creates impl",
            "FAST creates impl");
  }

  @Test
  void closingClosesBoth() {
    new TestHost<>(composite).close();

    assertThat(journal.events)
        .containsSubsequence(
            "GENERAL closes impl",
            "FAST closes impl",
            "GENERAL closes builder",
            "FAST closes builder");
  }

  @Test
  void aChildThatFailsToCloseDoesNotKeepTheOtherOpen() {
    var host = new TestHost<>(composite);
    journal.beforeClose = LifecycleTest::fail;

    assertThatThrownBy(host.impl::close).hasMessageContaining("told to");
    assertThatThrownBy(host.builder::close).hasMessageContaining("told to");

    assertThat(journal.events).contains("FAST closes impl", "FAST closes builder");
  }

  @Test
  void aBuilderMadeHalfwayIsClosed() {
    journal.beforeCreate = failOnCall(2);

    assertThatThrownBy(() -> composite.createBuilder(TestHost.GROUP, TestHost.CACHE))
        .hasMessageContaining("told to");

    assertThat(journal.events).containsExactly("GENERAL creates builder", "GENERAL closes builder");
  }

  @Test
  void anImplementationMadeHalfwayIsClosedAndBothFailuresAreTold() {
    journal.beforeCreate = failOnCall(2);
    journal.beforeClose = LifecycleTest::fail;

    assertThatThrownBy(
            () -> composite.createImpl(TestHost.LAYER, LayerParameters.NONE, TestHost.CACHE))
        .hasMessageContaining("told to")
        .satisfies(failure -> assertThat(failure.getSuppressed()).hasSize(1));

    assertThat(journal.events).containsExactly("GENERAL creates impl", "GENERAL closes impl");
  }

  @Test
  void aFailedBuildIsPassedOnAndTheNextStepIsRight() {
    var host = new TestHost<>(composite);
    var text = TestBatch.text(3, 9);
    journal.beforeBuild = LifecycleTest::fail;
    assertThatThrownBy(() -> host.run(text)).hasMessageContaining("told to");
    journal.beforeBuild = () -> {};

    assertThat(host.run(text).values()).isEqualTo(TestHost.alone(TestHost.GROUP, text).values());
  }

  @Test
  void aFailedForwardIsPassedOnAndTheSameBatchRunsAgain() {
    var host = new TestHost<>(composite);
    var text = TestBatch.text(3, 9);
    try (Workspace.Step step = host.openStep()) {
      var metadata = host.build(step, text);
      journal.beforeForward = LifecycleTest::fail;
      assertThatThrownBy(() -> host.forward(metadata, text)).hasMessageContaining("told to");
      journal.beforeForward = () -> {};

      assertThat(host.forward(metadata, text).values())
          .isEqualTo(TestHost.alone(TestHost.GROUP, text).values());
    }
  }

  @Test
  void aPolicyThatFailsBuildsNothing() {
    FakePolicy failing =
        FakePolicy.of(
            (group, batch) -> {
              throw BifocalException.of(ErrorCode.IMAGE_CUT, "an image is cut");
            });
    var host =
        new TestHost<>(CompositeBackends.createCompositeBackendOrThrow(general, fast, failing));
    journal.events.clear();

    assertThatThrownBy(() -> host.run(TestBatch.text(2, 5)))
        .isInstanceOfSatisfying(
            BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.IMAGE_CUT));
    assertThat(journal.events).isEmpty();
  }

  @Test
  void aPolicyThatForgetsARequestIsRefused() {
    FakePolicy forgetful =
        FakePolicy.of((group, batch) -> FakePolicy.toChild(TestBatch.text(1, 1), Child.B));
    var host =
        new TestHost<>(CompositeBackends.createCompositeBackendOrThrow(general, fast, forgetful));

    assertThatThrownBy(() -> host.run(TestBatch.of(lens(1, 1), 3, 4).build()))
        .isInstanceOfSatisfying(
            BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.SHAPE_MISMATCH))
        .hasMessageContaining("policy fake");
  }

  @Test
  void aCacheThatTheChildrenDoNotShareIsRefusedBeforeTheyAreMade() {
    KvCacheSpec oddBlocks = cache(KvLayouts.NHD, KvCacheDtype.FLOAT32, 3);
    KvCacheSpec otherLayout = cache(new FakeLayout("PACKED"), KvCacheDtype.FLOAT32, 4);
    KvCacheSpec otherType = cache(KvLayouts.NHD, KvCacheDtype.FP8_E4M3, 4);

    for (KvCacheSpec cache : new KvCacheSpec[] {oddBlocks, otherLayout, otherType}) {
      assertThatThrownBy(() -> composite.createBuilder(TestHost.GROUP, cache))
          .isInstanceOfSatisfying(
              BifocalException.class,
              e -> assertThat(e.code()).isEqualTo(ErrorCode.KV_INCOMPATIBLE));
      assertThatThrownBy(() -> composite.createImpl(TestHost.LAYER, LayerParameters.NONE, cache))
          .isInstanceOfSatisfying(
              BifocalException.class,
              e -> assertThat(e.code()).isEqualTo(ErrorCode.KV_INCOMPATIBLE));
    }
    assertThat(journal.events).isEmpty();
  }

  private static KvCacheSpec cache(KvLayout layout, KvCacheDtype dtype, int blockSize) {
    return new KvCacheSpec(
        layout, dtype, blockSize, 1, TestHost.HEAD_SIZE, TestHost.HEAD_SIZE, KvScales.ONE);
  }

  @Test
  void aLayerBeyondWhatTheChildrenShareIsRefusedBeforeTheyAreMade() {
    for (AttentionLayerSpec layer :
        new AttentionLayerSpec[] {
          TestHost.LAYER.withType(AttentionType.ENCODER_ONLY),
          TestHost.LAYER.withMask(AttentionMask.CAUSAL.withImages(ImageMask.CLAMP_BOTH)),
          AttentionLayerSpec.Dense.decoder(2, 1, 3, DType.FP32, AttentionMask.CAUSAL),
          AttentionLayerSpec.Dense.decoder(2, 1, 4, DType.FP16, AttentionMask.CAUSAL)
        }) {
      assertThatThrownBy(() -> composite.createImpl(layer, LayerParameters.NONE, TestHost.CACHE))
          .isInstanceOfSatisfying(
              BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNSUPPORTED));
    }
    assertThat(journal.events).isEmpty();
  }

  @Test
  void aCallFromAnotherThreadIsRefused() throws InterruptedException {
    var host = new TestHost<>(composite);
    var text = TestBatch.text(3, 9);
    try (var executor = Executors.newSingleThreadExecutor();
        Workspace.Step step = host.openStep()) {
      var metadata = host.build(step, text);
      var q = TestHost.queries(text);
      var output = TestHost.Result.poisoned(text).output();
      journal.events.clear();

      for (Runnable call :
          new Runnable[] {
            () -> host.build(step, text),
            () -> host.impl.writeKv(host.launch, TestHost.keys(text), host.cache, text.slots()),
            () -> host.impl.forward(host.launch, q, host.cache, metadata, output)
          }) {
        var refused = executor.submit(call);
        assertThatThrownBy(refused::get)
            .isInstanceOf(ExecutionException.class)
            .cause()
            .isInstanceOfSatisfying(
                BifocalException.class,
                e -> assertThat(e.code()).isEqualTo(ErrorCode.WRONG_THREAD));
      }
      assertThat(journal.events).isEmpty();
    }
  }

  @Test
  void keysOutsideACacheGoToOneChildWhole() {
    FakePolicy policy = FakePolicy.always(Child.B);
    var host =
        new TestHost<>(CompositeBackends.createCompositeBackendOrThrow(general, fast, policy));
    var batch = TestBatch.text(3, 3);
    var q = TestHost.queries(batch);
    journal.events.clear();
    try (Workspace.Step step = host.openStep()) {
      host.impl.forwardUncached(
          host.launch,
          q,
          TestHost.keys(batch),
          host.build(step, batch),
          TestHost.Result.poisoned(batch).output());
    }

    assertThat(journal.events).containsExactly("FAST builds", "FAST forwards uncached");
  }

  @Test
  void keysOutsideACacheCannotBeDivided() {
    FakePolicy policy = FakePolicy.byRequest(r -> r == 0 ? Child.A : Child.B);
    var host =
        new TestHost<>(CompositeBackends.createCompositeBackendOrThrow(general, fast, policy));
    var batch = TestBatch.of(lens(3, 2), 3, 2).build();
    var q = TestHost.queries(batch);
    var kv = TestHost.keys(batch);
    try (Workspace.Step step = host.openStep()) {
      var metadata = host.build(step, batch);

      assertThatThrownBy(
              () ->
                  host.impl.forwardUncached(
                      host.launch, q, kv, metadata, TestHost.Result.poisoned(batch).output()))
          .isInstanceOfSatisfying(
              BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNSUPPORTED));
    }
  }

  private static void fail() {
    throw new IllegalStateException("told to fail");
  }

  private static Runnable failOnCall(int nth) {
    int[] calls = {0};
    return () -> {
      calls[0]++;
      if (calls[0] == nth) {
        fail();
      }
    };
  }
}
