package bifocal.conformance;

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
import bifocal.core.cache.KvLayouts;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.reference.HostTensor;
import bifocal.reference.KeyValues;
import bifocal.reference.ReferenceAttention;
import bifocal.reference.ReferenceBackend;
import bifocal.reference.ReferenceMetadata;
import bifocal.reference.ReferenceRow;

/** The reference with one thing wrong: each test overrides one of its methods. */
class Mutant implements AttentionBackend<ReferenceMetadata> {
  private final ReferenceBackend right = ReferenceBackend.over(KvLayouts.NHD);

  /** What it claims. */
  FeatureSet features(FeatureSet right) {
    return right;
  }

  /** What it takes the layer for. */
  Dense layer(Dense right) {
    return right;
  }

  /** What it takes the batch for, when it builds. */
  CommonAttentionMetadata batch(CommonAttentionMetadata right) {
    return right;
  }

  /** Where it finds keys and values. */
  KeyValues keyValues(KeyValues right, KvCacheView cache, CommonAttentionMetadata batch) {
    return right;
  }

  /** What it takes the result for. */
  ReferenceRow row(Dense layer, ReferenceRow right) {
    return right;
  }

  /** What it checks before it runs. */
  void check(LaunchContext launch, KvCacheView cache) {
    launch.requireOwner();
    cache.requireOpen();
  }

  /** What it does besides. */
  void after(CommonAttentionMetadata batch, AttentionOutput output) {}

  /** How it writes. */
  void writeKv(
      AttentionImpl<ReferenceMetadata> right,
      LaunchContext launch,
      KvInput input,
      KvCacheView cache,
      SlotMapping slots) {
    right.writeKv(launch, input, cache, slots);
  }

  @Override
  public BackendName name() {
    return BackendName.of("MUTANT");
  }

  @Override
  public Capabilities capabilities() {
    return Capabilities.of(features(right.capabilities().all()));
  }

  @Override
  public GraphSupport graphSupport(LayerGroup group) {
    return GraphSupport.NEVER;
  }

  @Override
  public WorkspacePlan workspace(LayerGroup group, KvCacheSpec cache, BatchLimits limits) {
    return WorkspacePlan.NONE;
  }

  @Override
  public AttentionMetadataBuilder<ReferenceMetadata> createBuilder(
      LayerGroup group, KvCacheSpec cache) {
    AttentionMetadataBuilder<ReferenceMetadata> builder = right.createBuilder(group, cache);
    return (step, built, batch) -> build(builder, step, built, batch);
  }

  private ReferenceMetadata build(
      AttentionMetadataBuilder<ReferenceMetadata> builder,
      StepContext step,
      LayerGroup group,
      CommonAttentionMetadata batch) {
    return builder.build(step, group, batch(batch));
  }

  @Override
  public AttentionImpl<ReferenceMetadata> createImpl(
      AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
    Dense dense = (Dense) layer;
    return new Impl(
        dense,
        ReferenceAttention.of(layer(dense), parameters),
        right.createImpl(layer, parameters, cache));
  }

  private final class Impl implements AttentionImpl<ReferenceMetadata> {
    private final Dense layer;
    private final ReferenceAttention attention;
    private final AttentionImpl<ReferenceMetadata> rightImpl;

    private Impl(
        Dense layer, ReferenceAttention attention, AttentionImpl<ReferenceMetadata> rightImpl) {
      this.layer = layer;
      this.attention = attention;
      this.rightImpl = rightImpl;
    }

    @Override
    public void writeKv(LaunchContext launch, KvInput input, KvCacheView cache, SlotMapping slots) {
      Mutant.this.writeKv(rightImpl, launch, input, cache, slots);
    }

    @Override
    public void forward(
        LaunchContext launch,
        TensorView q,
        KvCacheView cache,
        ReferenceMetadata metadata,
        AttentionOutput output) {
      check(launch, cache);
      CommonAttentionMetadata batch = metadata.batch();
      KeyValues kv = keyValues(KeyValues.cached(cache, batch), cache, batch);
      HostTensor out = HostTensor.over(output.out());
      for (ReferenceRow computed : attention.all(q, kv, batch)) {
        ReferenceRow row = row(layer, computed);
        for (int d = 0; d < row.out().length; d++) {
          out.put((float) row.out()[d], row.at().queryToken(), row.at().head(), d);
        }
        output
            .lse()
            .map(HostTensor::over)
            .forEach(lse -> lse.put((float) row.lse(), row.at().queryToken(), row.at().head()));
      }
      after(batch, output);
    }

    @Override
    public void forwardUncached(
        LaunchContext launch,
        TensorView q,
        KvInput kv,
        ReferenceMetadata metadata,
        AttentionOutput output) {
      rightImpl.forwardUncached(launch, q, kv, metadata, output);
    }
  }
}
