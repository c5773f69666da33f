package bifocal.core.backend;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.workspace.WorkspacePlan;
import org.junit.jupiter.api.Test;

/** C09: a derived backend states the level of its own kernels. */
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
    public WorkspacePlan workspace(LayerGroup group, KvCacheSpec cache, BatchLimits batches) {
      return WorkspacePlan.NONE;
    }

    /** What the implementation would launch. */
    String kernel() {
      return "built in";
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

  /** A class between, whatever the last one is: kernels and the level must be of one class. */
  @Test
  void aBackendDerivedFromOneWithOtherKernelsDoesNotInheritTheLevel() {
    assertThat(StatedGraphSupport.of(new RenamedOtherKernels(), GROUP))
        .isEqualTo(GraphSupport.NEVER);
    assertThat(StatedGraphSupport.of(new KernelsBelowAStatement(), GROUP))
        .isEqualTo(GraphSupport.NEVER);
  }

  /** Other kernels by way of what the inherited builder or implementation calls. */
  @Test
  void aBackendThatReplacesWhatItsKernelsCallDoesNotInheritTheLevel() {
    assertThat(new OtherHook().graphSupport(GROUP)).isEqualTo(GraphSupport.ALWAYS);
    assertThat(StatedGraphSupport.of(new OtherHook(), GROUP)).isEqualTo(GraphSupport.NEVER);
    assertThat(StatedGraphSupport.of(new OtherWorkspace(), GROUP)).isEqualTo(GraphSupport.NEVER);
  }

  @Test
  void aPartThatTheStatingClassLeftOpenIsItsOwnDesign() {
    assertThat(StatedGraphSupport.of(new Filled(), GROUP)).isEqualTo(GraphSupport.UNIFORM_BATCH);
  }

  /** A variant's level is stated by whoever resolves variants. */
  @Test
  void aLevelOfVariantsIsNotInheritedEither() {
    assertThat(StatedGraphSupport.ofVariant(new WithVariants(), GraphSupport.ALWAYS))
        .isEqualTo(GraphSupport.ALWAYS);
    assertThat(StatedGraphSupport.ofVariant(new VariantsOfOthers(), GraphSupport.ALWAYS))
        .isEqualTo(GraphSupport.NEVER);
  }

  private static final class RenamedOtherKernels extends OtherKernels {
    @Override
    public BackendName name() {
      return new BackendName("RENAMED");
    }
  }

  private static class AStatement extends BuiltIn {
    @Override
    public GraphSupport graphSupport(LayerGroup group) {
      return GraphSupport.UNIFORM_BATCH;
    }
  }

  private static final class KernelsBelowAStatement extends AStatement {
    @Override
    public AttentionImpl<AttentionMetadata> createImpl(
        AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
      throw new AssertionError("nothing else is run");
    }
  }

  private static final class OtherHook extends BuiltIn {
    @Override
    String kernel() {
      return "another";
    }
  }

  private static final class OtherWorkspace extends BuiltIn {
    @Override
    public WorkspacePlan workspace(LayerGroup group, KvCacheSpec cache, BatchLimits batches) {
      return WorkspacePlan.of(1);
    }
  }

  private abstract static class Open extends BuiltIn {
    abstract String fastKernel();

    @Override
    public GraphSupport graphSupport(LayerGroup group) {
      return GraphSupport.UNIFORM_BATCH;
    }
  }

  private static final class Filled extends Open {
    @Override
    String fastKernel() {
      return "of this class, as the other left open";
    }
  }

  private static class WithVariants extends BuiltIn implements ResolvesVariants {
    @Override
    public ResolvedVariant variant(AttentionRequest request) {
      throw new AssertionError("no variant is asked for");
    }
  }

  private static final class VariantsOfOthers extends WithVariants {
    @Override
    public AttentionImpl<AttentionMetadata> createImpl(
        AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
      throw new AssertionError("nothing else is run");
    }
  }
}
