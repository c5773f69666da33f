package bifocal.cli.select;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.composite.guice.BifocalInjector;
import bifocal.composite.guice.PlatformModules;
import bifocal.conformance.fake.CallLog;
import bifocal.conformance.fake.FakeBackend;
import bifocal.conformance.fake.FakeMetadata;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.BackendRegistry;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.backend.InvalidReason;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayouts;
import bifocal.core.device.Platform;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.select.SelectionRefusal;
import bifocal.core.select.SelectionReport;
import bifocal.core.select.Selector;
import bifocal.core.tensor.DType;
import io.vavr.control.Validation;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Registry rows: a host's own backend, and one in the place of another. */
class RegisteredBackendTest {
  private static final FeatureSet PLAIN =
      FeatureSet.NONE
          .withDtypes(DType.FP16, DType.BF16)
          .withKvCacheDtypes(KvCacheDtype.AUTO, KvCacheDtype.FLOAT16, KvCacheDtype.BFLOAT16)
          .withBlockSizes(BlockSizes.ANY)
          .withHeadSizes(HeadSizes.ANY)
          .withTypes(AttentionType.DECODER)
          .withFeatures(Feature.KV_CONNECTOR, Feature.ADAPTIVE_VERIFICATION)
          .withKvLayouts(KvLayouts.NHD)
          .withDevices(DeviceSupport.on(Platform.CUDA));

  private final Selector selector =
      BifocalInjector.create(PlatformModules.detect().present()).getInstance(Selector.class);
  private final BackendRegistry registry = selector.registry();

  @BeforeEach
  void needsCuda() {
    Asking.requireInstalled(Platform.CUDA);
  }

  private static AttentionBackend<?> backend(String name) {
    return FakeBackend.of(name, new CallLog(), PLAIN);
  }

  private Validation<SelectionRefusal, SelectionReport> select(String arguments) {
    return selector.select(Asking.request(arguments));
  }

  @Test
  void aBackendOfTheHostIsChosenByName() {
    try (BackendRegistry.Registration custom = registry.register(backend("CUSTOM"), "a host")) {
      assertThat(custom).isNotNull();
      assertThat(select("--capability 9.0 --attention-backend custom").get().backend())
          .isEqualTo(BackendName.of("CUSTOM"));
    }
  }

  @Test
  void aPlainBackendOfTheHostRefusesDcpForThatReasonAlone() {
    try (BackendRegistry.Registration custom = registry.register(backend("CUSTOM"), "a host")) {
      assertThat(custom).isNotNull();
      assertThat(
              select("--capability 9.0 --attention-backend CUSTOM --dcp 2")
                  .getError()
                  .candidates()
                  .head()
                  .reasons()
                  .map(InvalidReason::text))
          .containsExactly("DCP not supported");
    }
  }

  @Test
  void aReplacementIsChosenUntilItIsTakenBack() {
    String asked = "--capability 8.0 --attention-backend FLASH_ATTN";
    AttentionBackend<?> own = select(asked).get().chosen();
    AttentionBackend<?> other = backend("FLASH_ATTN");

    try (BackendRegistry.Registration replacement = registry.replace(other, "a host")) {
      assertThat(replacement).isNotNull();
      assertThat(select(asked).get().chosen()).isSameAs(other);
    }

    assertThat(select(asked).get().chosen()).isSameAs(own);
  }

  /** C09, neighbour: the report does not show a level that was stated for other kernels. */
  @Test
  void aLevelOfCapturesThatIsOnlyInheritedIsNotReported() {
    for (AttentionBackend<?> backend : List.of(new Stating(), new OtherKernels())) {
      try (BackendRegistry.Registration custom = registry.register(backend, "a host")) {
        assertThat(custom).isNotNull();
        assertThat(select("--capability 9.0 --attention-backend CUSTOM").get().graphSupport())
            .isEqualTo(backend instanceof OtherKernels ? GraphSupport.NEVER : GraphSupport.ALWAYS);
      }
    }
  }

  private static class Stating implements AttentionBackend<FakeMetadata> {
    private final FakeBackend kernels = FakeBackend.of("CUSTOM", new CallLog(), PLAIN);

    @Override
    public BackendName name() {
      return kernels.name();
    }

    @Override
    public Capabilities capabilities() {
      return kernels.capabilities();
    }

    @Override
    public GraphSupport graphSupport(LayerGroup group) {
      return GraphSupport.ALWAYS;
    }

    @Override
    public AttentionMetadataBuilder<FakeMetadata> createBuilder(
        LayerGroup group, KvCacheSpec cache) {
      return kernels.createBuilder(group, cache);
    }

    @Override
    public AttentionImpl<FakeMetadata> createImpl(
        AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
      return kernels.createImpl(layer, parameters, cache);
    }
  }

  private static final class OtherKernels extends Stating {
    @Override
    public AttentionImpl<FakeMetadata> createImpl(
        AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
      throw new AssertionError("nothing is run");
    }
  }
}
