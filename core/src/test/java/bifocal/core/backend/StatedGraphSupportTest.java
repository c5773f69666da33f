package bifocal.core.backend;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import org.junit.jupiter.api.Test;

class StatedGraphSupportTest {
  private static final LayerGroup GROUP =
      LayerGroup.of(
          "full", AttentionLayerSpec.Dense.decoder(8, 2, 64, DType.BF16, AttentionMask.CAUSAL));

  @Test
  void aBackendThatStatesALevelHasIt() {
    assertThat(StatedGraphSupport.of(new BuiltIn(), GROUP)).isEqualTo(GraphSupport.ALWAYS);
  }

  @Test
  void aDerivedBackendWithOtherKernelsDoesNotInheritTheLevel() {
    assertThat(new OtherKernels().graphSupport(GROUP)).isEqualTo(GraphSupport.ALWAYS);
    assertThat(StatedGraphSupport.of(new OtherKernels(), GROUP)).isEqualTo(GraphSupport.NEVER);
    assertThat(StatedGraphSupport.of(new OtherMetadata(), GROUP)).isEqualTo(GraphSupport.NEVER);
  }

  @Test
  void aDerivedBackendThatStatesItsOwnLevelHasIt() {
    assertThat(StatedGraphSupport.of(new Stated(), GROUP)).isEqualTo(GraphSupport.UNIFORM_BATCH);
  }

  @Test
  void aDerivedBackendThatKeepsTheKernelsKeepsTheLevel() {
    assertThat(StatedGraphSupport.of(new Renamed(), GROUP)).isEqualTo(GraphSupport.ALWAYS);
  }

  @Test
  void aBackendThatStatesNothingIsNeverCaptured() {
    assertThat(StatedGraphSupport.of(new StubBackend("STUB", FeatureSet.NONE), GROUP))
        .isEqualTo(GraphSupport.NEVER);
  }

  private static class BuiltIn implements AttentionBackend<AttentionMetadata> {
    @Override
    public BackendName name() {
      return new BackendName("BUILT_IN");
    }

    @Override
    public Capabilities capabilities() {
      return Capabilities.of(FeatureSet.NONE);
    }

    @Override
    public GraphSupport graphSupport(LayerGroup group) {
      return GraphSupport.ALWAYS;
    }

    @Override
    public AttentionMetadataBuilder<AttentionMetadata> createBuilder(
        LayerGroup group, KvCacheSpec cache) {
      throw new AssertionError("nothing is built");
    }

    @Override
    public AttentionImpl<AttentionMetadata> createImpl(
        AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
      throw new AssertionError("nothing is run");
    }
  }

  private static class OtherKernels extends BuiltIn {
    @Override
    public AttentionImpl<AttentionMetadata> createImpl(
        AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
      throw new AssertionError("nothing else is run");
    }
  }

  private static final class OtherMetadata extends BuiltIn {
    @Override
    public AttentionMetadataBuilder<AttentionMetadata> createBuilder(
        LayerGroup group, KvCacheSpec cache) {
      throw new AssertionError("nothing else is built");
    }
  }

  private static final class Stated extends OtherKernels {
    @Override
    public GraphSupport graphSupport(LayerGroup group) {
      return GraphSupport.UNIFORM_BATCH;
    }
  }

  private static final class Renamed extends BuiltIn {
    @Override
    public BackendName name() {
      return new BackendName("RENAMED");
    }
  }
}
