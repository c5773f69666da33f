package bifocal.core.engine;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.graph.GraphKey;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.WorkspacePlan;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Function;

/** A backend that writes down what happens to it and fails where a test says. */
final class RecordingBackend implements AttentionBackend<RecordingBackend.Metadata> {
  /** Metadata of one build. */
  record Metadata(int build, GraphKey graphKey) implements AttentionMetadata {}

  final List<String> log = new ArrayList<>();
  final Set<String> failing = new HashSet<>();
  private final String name;
  private Function<BatchLimits, WorkspacePlan> workspace = limits -> WorkspacePlan.NONE;
  private Consumer<StepContext> building = step -> {};
  private GraphSupport graphs = GraphSupport.NEVER;
  private int impls;
  private int builds;

  RecordingBackend(String name) {
    this.name = name;
  }

  RecordingBackend needing(Function<BatchLimits, WorkspacePlan> plan) {
    workspace = plan;
    return this;
  }

  RecordingBackend capturing(GraphSupport support) {
    graphs = support;
    return this;
  }

  RecordingBackend building(Consumer<StepContext> look) {
    building = look;
    return this;
  }

  /** Writes an event down, then fails if it is one of those that shall. */
  private void happened(String event) {
    log.add(event);
    if (failing.contains(event)) {
      throw new IllegalStateException(event);
    }
  }

  @Override
  public BackendName name() {
    return new BackendName(name);
  }

  @Override
  public Capabilities capabilities() {
    return Capabilities.of(FeatureSet.NONE);
  }

  @Override
  public GraphSupport graphSupport(LayerGroup group) {
    return graphs;
  }

  @Override
  public WorkspacePlan workspace(LayerGroup group, KvCacheSpec cache, BatchLimits limits) {
    return workspace.apply(limits);
  }

  @Override
  public AttentionMetadataBuilder<Metadata> createBuilder(LayerGroup group, KvCacheSpec cache) {
    happened("builder");
    return new AttentionMetadataBuilder<>() {
      @Override
      public Metadata build(StepContext step, LayerGroup group, CommonAttentionMetadata batch) {
        happened("build");
        building.accept(step);
        return new Metadata(builds++, new GraphKey(name, batch.requests(), batch.tokens(), true));
      }

      @Override
      public void close() {
        happened("close builder");
      }
    };
  }

  @Override
  public AttentionImpl<Metadata> createImpl(
      AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
    String impl = "impl " + impls++;
    happened(impl);
    return new AttentionImpl<>() {
      @Override
      public void writeKv(
          LaunchContext launch, KvInput input, KvCacheView view, SlotMapping slots) {
        happened("write " + impl);
      }

      @Override
      public void forward(
          LaunchContext launch,
          TensorView q,
          KvCacheView view,
          Metadata metadata,
          AttentionOutput output) {
        happened("forward " + impl + " of build " + metadata.build());
      }

      @Override
      public void close() {
        happened("close " + impl);
      }
    };
  }
}
