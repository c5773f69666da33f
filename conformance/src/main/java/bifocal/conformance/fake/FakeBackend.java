package bifocal.conformance.fake;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
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
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphKey;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.reference.ReferenceBackend;
import io.vavr.control.Option;

/**
 * A backend that records every call, declares what a test tells it to declare, fails where its
 * script says so and computes with a given kernel. It is immutable; each {@code with} method makes
 * another.
 *
 * @param name unique name
 * @param log where calls are recorded
 * @param capabilities what it claims
 * @param kernel what forward does
 * @param failures which calls fail
 * @param graphSupport what it claims of captured graphs
 * @param plan workspace it asks for
 * @param decodeThreshold queries up to which a request is a decode
 */
public record FakeBackend(
    BackendName name,
    CallLog log,
    Capabilities capabilities,
    FakeKernel kernel,
    Failures failures,
    GraphSupport graphSupport,
    WorkspacePlan plan,
    Option<Integer> decodeThreshold)
    implements AttentionBackend<FakeMetadata> {

  /** A fake that declares a set of features and writes nothing. */
  public static FakeBackend of(String name, CallLog log, FeatureSet features) {
    return new FakeBackend(
        BackendName.of(name),
        log,
        Capabilities.of(features),
        FakeKernel.NOTHING,
        Failures.NONE,
        GraphSupport.NEVER,
        WorkspacePlan.NONE,
        Option.none());
  }

  public FakeBackend withFeatures(FeatureSet features) {
    return new FakeBackend(
        name,
        log,
        Capabilities.of(features),
        kernel,
        failures,
        graphSupport,
        plan,
        decodeThreshold);
  }

  public FakeBackend withKernel(FakeKernel other) {
    return new FakeBackend(
        name, log, capabilities, other, failures, graphSupport, plan, decodeThreshold);
  }

  public FakeBackend withFailures(Failures other) {
    return new FakeBackend(
        name, log, capabilities, kernel, other, graphSupport, plan, decodeThreshold);
  }

  public FakeBackend withGraphSupport(GraphSupport other) {
    return new FakeBackend(name, log, capabilities, kernel, failures, other, plan, decodeThreshold);
  }

  public FakeBackend withPlan(WorkspacePlan other) {
    return new FakeBackend(
        name, log, capabilities, kernel, failures, graphSupport, other, decodeThreshold);
  }

  public FakeBackend withDecodeThreshold(int queries) {
    return new FakeBackend(
        name, log, capabilities, kernel, failures, graphSupport, plan, Option.some(queries));
  }

  @Override
  public GraphSupport graphSupport(LayerGroup group) {
    return graphSupport;
  }

  @Override
  public WorkspacePlan workspace(LayerGroup group, KvCacheSpec cache, BatchLimits limits) {
    return plan;
  }

  @Override
  public AttentionMetadataBuilder<FakeMetadata> createBuilder(LayerGroup group, KvCacheSpec cache) {
    record(new Call.BuilderCreated(name, group, cache));
    return new FakeBuilder();
  }

  @Override
  public AttentionImpl<FakeMetadata> createImpl(
      AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
    record(new Call.ImplCreated(name, layer, cache));
    return new FakeImpl(layer, parameters, cache);
  }

  private void record(Call call) {
    log.add(call);
    failures.check(log, call);
  }

  private final class FakeBuilder implements AttentionMetadataBuilder<FakeMetadata> {
    @Override
    public FakeMetadata build(StepContext step, LayerGroup group, CommonAttentionMetadata batch) {
      step.launch().requireOwner();
      record(new Call.Built(name, group, batch, step.step()));
      return new FakeMetadata(name, batch, key(batch));
    }

    @Override
    public Option<Integer> decodeThreshold() {
      return decodeThreshold;
    }

    @Override
    public void close() {
      record(new Call.BuilderClosed(name));
    }

    private GraphKey key(CommonAttentionMetadata batch) {
      boolean safe =
          switch (graphSupport) {
            case NEVER -> false;
            case UNIFORM_SINGLE_TOKEN_DECODE -> uniform(batch) && batch.maxQueryLen() == 1;
            case UNIFORM_BATCH -> uniform(batch);
            case ALWAYS -> true;
          };
      return safe
          ? new GraphKey(name.value(), batch.requests(), batch.tokens(), true)
          : GraphKey.EAGER;
    }

    private static boolean uniform(CommonAttentionMetadata batch) {
      for (int request = 0; request < batch.live(); request++) {
        if (batch.queryLen(request) != batch.maxQueryLen()) {
          return false;
        }
      }
      return !batch.isEmpty();
    }
  }

  private final class FakeImpl implements AttentionImpl<FakeMetadata> {
    private final AttentionLayerSpec layer;
    private final LayerParameters parameters;
    private final KvCacheSpec cache;

    private FakeImpl(AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
      this.layer = layer;
      this.parameters = parameters;
      this.cache = cache;
    }

    @Override
    public void writeKv(LaunchContext launch, KvInput input, KvCacheView view, SlotMapping slots) {
      launch.requireOwner();
      record(new Call.Wrote(name, slots.tokens()));
      if (view.device().hostReadable()) {
        ReferenceBackend.over(cache.layout())
            .createImpl(layer, parameters, cache)
            .writeKv(launch, input, view, slots);
      }
    }

    @Override
    public void forward(
        LaunchContext launch,
        TensorView q,
        KvCacheView view,
        FakeMetadata metadata,
        AttentionOutput output) {
      launch.requireOwner();
      requireOwn(metadata);
      record(new Call.Forwarded(name, metadata));
      if (layer instanceof AttentionLayerSpec.Dense dense) {
        kernel.forward(dense, parameters, q, view, metadata.batch(), output);
      }
    }

    @Override
    public void close() {
      record(new Call.ImplClosed(name));
    }

    private void requireOwn(FakeMetadata metadata) {
      if (!metadata.backend().equals(name)) {
        throw BifocalException.of(
            ErrorCode.INTERNAL, "metadata given to " + name, metadata.backend(), name);
      }
    }
  }
}
