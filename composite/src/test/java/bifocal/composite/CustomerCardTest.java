package bifocal.composite;

import static bifocal.composite.TestBatch.lens;
import static bifocal.composite.guice.AttentionBinder.backends;
import static bifocal.composite.guice.AttentionBinder.composites;
import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.clearInvocations;
import static org.mockito.Mockito.inOrder;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.verifyNoInteractions;
import static org.mockito.Mockito.verifyNoMoreInteractions;
import static org.mockito.Mockito.when;

import bifocal.composite.guice.AttentionBackends;
import bifocal.composite.guice.BifocalInjector;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.Feature;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.graph.GraphKey;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.route.Child;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.Route;
import bifocal.core.route.RouteReason;
import bifocal.core.route.RoutingPolicy;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.core.workspace.WorkspaceRegion;
import com.google.inject.AbstractModule;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.mockito.ArgumentCaptor;
import org.mockito.InOrder;
import org.mockito.invocation.InvocationOnMock;

/**
 * A host brings two backends and a policy of its own by Guice, and gets one backend: text runs on
 * the fast one, images on the general one, a mixed batch on both.
 */
class CustomerCardTest {
  private static final BackendName GENERAL = new BackendName("HOST_GENERAL");
  private static final BackendName FAST = new BackendName("HOST_FAST");
  private static final BackendName PAIR = new BackendName("HOST_PAIR");
  private static final int LAYERS = 3;

  /** Metadata that the general child builds. */
  interface GeneralMetadata extends AttentionMetadata {}

  /** Metadata that the fast child builds. */
  interface FastMetadata extends AttentionMetadata {}

  private static final class Mocks<M extends AttentionMetadata> {
    private final AttentionBackend<M> backend;
    private final AttentionMetadataBuilder<M> builder;
    private final AttentionImpl<M> impl;
    private final M metadata;
    private MemorySegment scratch = MemorySegment.NULL;

    @SuppressWarnings("unchecked")
    Mocks(BackendName name, Class<M> metadataType, Feature... features) {
      backend = mock(AttentionBackend.class);
      builder = mock(AttentionMetadataBuilder.class);
      impl = mock(AttentionImpl.class);
      metadata = mock(metadataType);
      Capabilities capabilities =
          Capabilities.of(SummingBackend.PLAIN.union(SummingBackend.PLAIN.withFeatures(features)));
      when(backend.name()).thenReturn(name);
      when(backend.capabilities()).thenReturn(capabilities);
      when(backend.capabilities(any())).thenReturn(capabilities);
      when(backend.graphSupport(any())).thenReturn(GraphSupport.NEVER);
      when(backend.workspace(any(), any(), any()))
          .thenReturn(
              WorkspacePlan.of(
                  0, new WorkspaceRegion("scratch", 4096, WorkspaceRegion.State.SCRATCH)));
      when(backend.createBuilder(any(), any())).thenReturn(builder);
      when(backend.createImpl(any(), any(), any())).thenReturn(impl);
      when(builder.build(any(), any(), any())).thenAnswer(this::build);
      when(metadata.graphKey()).thenReturn(GraphKey.EAGER);
    }

    private M build(InvocationOnMock call) {
      scratch = call.<StepContext>getArgument(0).workspace().region("scratch");
      return metadata;
    }
  }

  /** The host's policy: a request with an image goes to the general child. */
  static final class ImagesToGeneral implements RoutingPolicy {
    @Override
    public Route route(LayerGroup group, CommonAttentionMetadata batch) {
      RequestRoutes.Builder routes = RequestRoutes.builder(batch.live());
      for (int r = 0; r < batch.live(); r++) {
        Child child = batch.images().count(r) > 0 ? Child.A : Child.B;
        routes.set(r, child, RouteReason.PREDICATE);
      }
      RequestRoutes requests = routes.build();
      if (requests.count(Child.A) == batch.live()) {
        return new Route.ToChildA(requests);
      }
      return requests.count(Child.B) == batch.live()
          ? new Route.ToChildB(requests)
          : new Route.SplitByRequest(requests, Option.none());
    }

    @Override
    public boolean carriesImages(Child child) {
      return child == Child.A;
    }
  }

  private final Mocks<GeneralMetadata> general =
      new Mocks<>(GENERAL, GeneralMetadata.class, Feature.INDIRECT_REQUESTS);
  private final Mocks<FastMetadata> fast =
      new Mocks<>(FAST, FastMetadata.class, Feature.INDIRECT_REQUESTS);
  private KvInput kv = TestHost.keys(TestBatch.text(1, 1));
  private TestHost<CompositeMetadata<GeneralMetadata, FastMetadata>> host;
  private List<AttentionImpl<CompositeMetadata<GeneralMetadata, FastMetadata>>> layers;

  @BeforeEach
  @SuppressWarnings("unchecked")
  void startTheHost() {
    var pair =
        (AttentionBackend<CompositeMetadata<GeneralMetadata, FastMetadata>>)
            BifocalInjector.create(
                    new AbstractModule() {
                      @Override
                      protected void configure() {
                        bind(ImagesToGeneral.class);
                        backends(binder()).addBinding(GENERAL).toInstance(general.backend);
                        backends(binder()).addBinding(FAST).toInstance(fast.backend);
                        composites(binder())
                            .bind(PAIR)
                            .of(GENERAL, FAST)
                            .routedBy(ImagesToGeneral.class)
                            .headSizes(TestHost.HEAD_SIZE);
                      }
                    })
                .getInstance(AttentionBackends.class)
                .named(PAIR);
    host = new TestHost<>(pair);
    layers =
        List.of(
            host.impl,
            pair.createImpl(TestHost.LAYER, LayerParameters.NONE, TestHost.CACHE),
            pair.createImpl(TestHost.LAYER, LayerParameters.NONE, TestHost.CACHE));
  }

  private void runAllLayers(CommonAttentionMetadata batch) {
    runAllLayers(batch, TestHost.Result.poisoned(batch).output());
  }

  private TensorView runAllLayers(CommonAttentionMetadata batch, AttentionOutput output) {
    TensorView q = TestHost.queries(batch);
    kv = TestHost.keys(batch);
    try (Workspace.Step step = host.openStep()) {
      var metadata = host.build(step, batch);
      for (var layer : layers) {
        layer.writeKv(host.launch, kv, host.cache, batch.slots());
        layer.forward(host.launch, q, host.cache, metadata, output);
      }
    }
    return q;
  }

  private static CommonAttentionMetadata built(Mocks<?> child) {
    ArgumentCaptor<CommonAttentionMetadata> batch =
        ArgumentCaptor.forClass(CommonAttentionMetadata.class);
    verify(child.builder).build(any(), any(), batch.capture());
    return batch.getValue();
  }

  @Test
  void aTextBatchIsBuiltAndRunByTheFastChildAlone() {
    CommonAttentionMetadata batch = TestBatch.text(3, 9);
    AttentionOutput output = TestHost.Result.poisoned(batch).output();

    TensorView q = runAllLayers(batch, output);

    assertThat(built(fast)).isSameAs(batch);
    verify(fast.impl, times(LAYERS)).forward(host.launch, q, host.cache, fast.metadata, output);
    verifyNoMoreInteractions(fast.impl);
    verify(general.impl, times(LAYERS)).writeKv(host.launch, kv, host.cache, batch.slots());
    verifyNoMoreInteractions(general.impl);
    verifyNoInteractions(general.builder);
  }

  @Test
  void anImageBatchIsBuiltAndRunByTheGeneralChildAlone() {
    CommonAttentionMetadata batch = TestBatch.image(8, 8, 2, 5);
    AttentionOutput output = TestHost.Result.poisoned(batch).output();

    TensorView q = runAllLayers(batch, output);

    assertThat(built(general)).isSameAs(batch);
    InOrder layer = inOrder(general.impl);
    layer.verify(general.impl).writeKv(host.launch, kv, host.cache, batch.slots());
    layer.verify(general.impl).forward(host.launch, q, host.cache, general.metadata, output);
    verify(general.impl, times(LAYERS))
        .forward(host.launch, q, host.cache, general.metadata, output);
    verifyNoInteractions(fast.builder, fast.impl);
  }

  @Test
  void aMixedBatchIsDividedByRequest() {
    CommonAttentionMetadata batch =
        TestBatch.of(lens(2, 8, 1), 6, 8, 12).images(lens(), lens(2, 5), lens()).build();
    AttentionOutput output = TestHost.Result.poisoned(batch).output();

    TensorView q = runAllLayers(batch, output);

    CommonAttentionMetadata images = built(general);
    assertThat(images.live()).isEqualTo(1);
    assertThat(images.queryStart(0)).isEqualTo(2);
    assertThat(images.blockTableRow(0)).isEqualTo(1);
    assertThat(images.images().count(0)).isEqualTo(1);
    CommonAttentionMetadata text = built(fast);
    assertThat(text.live()).isEqualTo(2);
    assertThat(text.queryStart(1)).isEqualTo(10);
    assertThat(text.blockTableRow(1)).isEqualTo(2);
    assertThat(text.images().isEmpty()).isTrue();
    verify(general.impl, times(LAYERS))
        .forward(host.launch, q, host.cache, general.metadata, output);
    verify(fast.impl, times(LAYERS)).forward(host.launch, q, host.cache, fast.metadata, output);
  }

  @Test
  void oneWorkspaceServesBothChildren() {
    runAllLayers(TestBatch.text(3, 9));
    runAllLayers(TestBatch.image(8, 8, 2, 5));

    assertThat(general.scratch.byteSize()).isEqualTo(4096);
    assertThat(general.scratch.address()).isEqualTo(fast.scratch.address());
    assertThat(host.workspace.memory().asOverlappingSlice(general.scratch)).isPresent();
  }

  @Test
  void bothChildrenGetOneCacheContractAndAreMadeOncePerGroupAndLayer() {
    runAllLayers(TestBatch.text(3, 9));

    verify(general.backend, times(1)).createBuilder(TestHost.GROUP, TestHost.CACHE);
    verify(general.backend, times(LAYERS))
        .createImpl(TestHost.LAYER, LayerParameters.NONE, TestHost.CACHE);
    ArgumentCaptor<LayerGroup> group = ArgumentCaptor.forClass(LayerGroup.class);
    ArgumentCaptor<KvCacheSpec> contract = ArgumentCaptor.forClass(KvCacheSpec.class);
    verify(fast.backend, times(1)).createBuilder(group.capture(), contract.capture());
    verify(fast.backend, times(LAYERS)).createImpl(any(), any(), any());
    assertThat(contract.getValue()).isSameAs(TestHost.CACHE);
    assertThat(group.getValue().mask().images()).isEqualTo(ImageMask.NONE);
  }

  @Test
  void theNextBatchTakesItsOwnWay() {
    CommonAttentionMetadata text = TestBatch.text(3, 9);
    runAllLayers(TestBatch.image(8, 8, 2, 5));
    clearInvocations(general.builder, general.impl, fast.builder, fast.impl);
    AttentionOutput output = TestHost.Result.poisoned(text).output();

    runAllLayers(text, output);

    verifyNoInteractions(general.builder);
    assertThat(built(fast)).isSameAs(text);
  }
}
