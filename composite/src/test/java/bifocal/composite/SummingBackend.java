package bifocal.composite;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.Execution;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvLayouts;
import bifocal.core.device.Platform;
import bifocal.core.graph.GraphKey;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.WorkspacePlan;
import io.vavr.control.Option;
import java.util.ArrayList;
import java.util.List;

/**
 * A child that writes down what is asked of it. In place of attention it sums the slots of the keys
 * a query sees, so that a wrong position, block, mask or row shows in the output.
 */
class SummingBackend implements AttentionBackend<SummingBackend.Metadata> {
  /** What every fake can do unless a test says otherwise. */
  static final FeatureSet PLAIN =
      FeatureSet.NONE
          .withDtypes(DType.FP32, DType.BF16)
          .withKvCacheDtypes(KvCacheDtype.AUTO, KvCacheDtype.FLOAT32, KvCacheDtype.BFLOAT16)
          .withBlockSizes(BlockSizes.multiplesOf(2))
          .withHeadSizes(HeadSizes.multiplesOf(2, 2, 256))
          .withTypes(AttentionType.DECODER)
          .withImageMasks(ImageMask.OVERRIDE, ImageMask.CLAMP_PAST)
          .withFeatures(Feature.SLIDING_WINDOW, Feature.NON_CAUSAL_LEFT_WINDOW, Feature.LSE)
          .withKvLayouts(KvLayouts.NHD, KvLayouts.HND)
          .withDevices(DeviceSupport.on(Platform.CPU, Platform.CUDA));

  private final BackendName name;
  private final Journal journal;
  private Capabilities capabilities;
  private GraphSupport graphSupport = GraphSupport.NEVER;
  private Option<Integer> decodeThreshold = Option.none();
  private Option<InvalidReason> combination = Option.none();
  private Option<InvalidReason> missing = Option.none();
  private Execution execution = Execution.NATIVE;
  private WorkspacePlan workspace = WorkspacePlan.NONE;

  SummingBackend(String name, Journal journal) {
    this.name = new BackendName(name);
    this.journal = journal;
    this.capabilities = Capabilities.of(PLAIN);
  }

  /** What happened, in order, and what happens by a test's wish. */
  static final class Journal {
    final List<String> events = new ArrayList<>();
    final List<Built> built = new ArrayList<>();
    final List<AttentionRequest> requests = new ArrayList<>();
    final List<BatchLimits> limits = new ArrayList<>();
    Runnable beforeBuild = () -> {};
    Runnable beforeForward = () -> {};
    Runnable beforeCreate = () -> {};
    Runnable beforeClose = () -> {};

    void add(String event) {
      events.add(event);
    }
  }

  /** One build: which child, and what it saw. */
  record Built(String child, LayerGroup group, CommonAttentionMetadata batch) {}

  /** A batch as a child saw it. */
  record Metadata(
      BackendName owner,
      LayerGroup group,
      CommonAttentionMetadata batch,
      GraphKey graphKey,
      StepContext step)
      implements AttentionMetadata {}

  SummingBackend with(FeatureSet features) {
    capabilities = Capabilities.of(features);
    return this;
  }

  SummingBackend with(FeatureSet reference, FeatureSet extensions) {
    capabilities = new Capabilities(reference, extensions);
    return this;
  }

  SummingBackend withMoreFeatures(Feature... more) {
    FeatureSet reference = capabilities.reference();
    return with(reference.union(FeatureSet.NONE.withFeatures(more)), capabilities.extensions());
  }

  SummingBackend withGraphSupport(GraphSupport support) {
    graphSupport = support;
    return this;
  }

  SummingBackend withDecodeThreshold(int threshold) {
    decodeThreshold = Option.some(threshold);
    return this;
  }

  SummingBackend withCombination(InvalidReason reason) {
    combination = Option.some(reason);
    return this;
  }

  SummingBackend withMissing(InvalidReason reason) {
    missing = Option.some(reason);
    return this;
  }

  SummingBackend withExecution(Execution value) {
    execution = value;
    return this;
  }

  SummingBackend withWorkspace(WorkspacePlan plan) {
    workspace = plan;
    return this;
  }

  @Override
  public BackendName name() {
    return name;
  }

  @Override
  public Capabilities capabilities() {
    return capabilities;
  }

  @Override
  public Capabilities capabilities(AttentionRequest request) {
    journal.requests.add(request);
    return capabilities;
  }

  @Override
  public Option<InvalidReason> checkCombination(AttentionRequest request) {
    journal.requests.add(request);
    return combination;
  }

  @Override
  public Option<InvalidReason> missingOnThisHost(AttentionRequest request) {
    return missing;
  }

  @Override
  public Execution execution() {
    return execution;
  }

  @Override
  public GraphSupport graphSupport(LayerGroup group) {
    return graphSupport;
  }

  @Override
  public WorkspacePlan workspace(LayerGroup group, KvCacheSpec cache, BatchLimits limits) {
    journal.limits.add(limits);
    return workspace;
  }

  @Override
  public AttentionMetadataBuilder<Metadata> createBuilder(LayerGroup group, KvCacheSpec cache) {
    journal.beforeCreate.run();
    journal.add(name + " creates builder");
    return new Builder(this);
  }

  @Override
  public AttentionImpl<Metadata> createImpl(
      AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
    journal.beforeCreate.run();
    journal.add(name + " creates impl");
    return new Impl(this, layer);
  }

  /** Runs in a build, before the batch is kept. */
  void onBuild(StepContext step) {}

  /** Runs in a forward, before the output is written. */
  void onForward(Metadata metadata) {}

  boolean indirect() {
    return capabilities.all().has(Feature.INDIRECT_REQUESTS);
  }

  private record Builder(SummingBackend backend) implements AttentionMetadataBuilder<Metadata> {
    @Override
    public Metadata build(StepContext step, LayerGroup group, CommonAttentionMetadata batch) {
      backend.journal.beforeBuild.run();
      backend.journal.add(backend.name + " builds");
      backend.journal.built.add(new Built(backend.name.value(), group, batch));
      backend.onBuild(step);
      GraphKey key =
          backend.graphSupport == GraphSupport.NEVER
              ? GraphKey.EAGER
              : new GraphKey(backend.name.value(), batch.requests(), batch.tokens(), true);
      return new Metadata(backend.name, group, batch, key, step);
    }

    @Override
    public Option<Integer> decodeThreshold() {
      return backend.decodeThreshold;
    }

    @Override
    public void close() {
      backend.journal.add(backend.name + " closes builder");
      backend.journal.beforeClose.run();
    }
  }

  private record Impl(SummingBackend backend, AttentionLayerSpec layer)
      implements AttentionImpl<Metadata> {
    @Override
    public void writeKv(LaunchContext launch, KvInput input, KvCacheView cache, SlotMapping slots) {
      backend.journal.add(backend.name + " writes");
    }

    @Override
    public void forward(
        LaunchContext launch,
        TensorView q,
        KvCacheView cache,
        Metadata metadata,
        AttentionOutput output) {
      assertMine(metadata);
      backend.journal.beforeForward.run();
      backend.journal.add(backend.name + " forwards");
      backend.onForward(metadata);
      SummingKernel.run(metadata, q, output, cache.spec().blockSize(), backend.indirect());
    }

    @Override
    public void forwardUncached(
        LaunchContext launch, TensorView q, KvInput kv, Metadata metadata, AttentionOutput output) {
      assertMine(metadata);
      backend.journal.add(backend.name + " forwards uncached");
    }

    @Override
    public void close() {
      backend.journal.add(backend.name + " closes impl");
      backend.journal.beforeClose.run();
    }

    private void assertMine(Metadata metadata) {
      if (!metadata.owner().equals(backend.name)) {
        throw new AssertionError(backend.name + " was handed metadata of " + metadata.owner());
      }
    }
  }
}
