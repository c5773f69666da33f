package bifocal.composite;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** A host with one layer, one cache and one workspace, on the host's memory. */
final class TestHost<M extends AttentionMetadata> implements AutoCloseable {
  static final int HEADS = 2;
  static final int HEAD_SIZE = 4;
  static final AttentionLayerSpec.Dense LAYER =
      AttentionLayerSpec.Dense.decoder(
          HEADS, 1, HEAD_SIZE, DType.FP32, AttentionMask.CAUSAL.withImages(ImageMask.CLAMP_PAST));
  static final LayerGroup GROUP = LayerGroup.of("layer.0", LAYER);
  static final KvCacheSpec CACHE =
      new KvCacheSpec(
          KvLayouts.NHD,
          KvCacheDtype.FLOAT32,
          TestBatch.BLOCK_SIZE,
          1,
          HEAD_SIZE,
          HEAD_SIZE,
          KvScales.ONE);
  static final BatchLimits LIMITS = new BatchLimits(64, 512, 512);
  static final float POISON = -77f;

  final LayerGroup group;
  final Workspace workspace;
  final KvCacheView cache;
  final WatchedLaunch launch;
  final AttentionMetadataBuilder<M> builder;
  final AttentionImpl<M> impl;
  private long step;

  TestHost(AttentionBackend<M> backend) {
    this(backend, GROUP, new WatchedLaunch());
  }

  TestHost(AttentionBackend<M> backend, LayerGroup group, WatchedLaunch launch) {
    this.group = group;
    this.launch = launch;
    var plan = backend.workspace(group, CACHE, LIMITS);
    this.workspace = Workspace.wrap(memory(plan.totalBytes(4)), plan, 4);
    this.cache = KvCacheView.wrap(memory(128 * CACHE.blockBytes()), CACHE);
    this.builder = backend.createBuilder(group, CACHE);
    this.impl = backend.createImpl(group.spec(), LayerParameters.NONE, CACHE);
  }

  /** Opens a step of the workspace; its metadata is used until the step is closed. */
  Workspace.Step openStep() {
    return workspace.openStep();
  }

  M build(Workspace.Step open, CommonAttentionMetadata batch) {
    return builder.build(new StepContext(launch, open, step++), group, batch);
  }

  /** Builds, writes and runs one batch; the result holds the output, row after row. */
  Result run(CommonAttentionMetadata batch) {
    try (Workspace.Step open = openStep()) {
      return forward(build(open, batch), batch);
    }
  }

  Result forward(M metadata, CommonAttentionMetadata batch) {
    return forward(metadata, batch, queries(batch));
  }

  Result forward(M metadata, CommonAttentionMetadata batch, TensorView q) {
    impl.writeKv(launch, keys(batch), cache, batch.slots());
    Result result = Result.poisoned(batch);
    impl.forward(launch, q, cache, metadata, result.output());
    return result;
  }

  /** What one backend that knows every mask writes for the batch, all in one run. */
  static Result alone(LayerGroup group, CommonAttentionMetadata batch) {
    var backend = new SummingBackend("ALONE", new SummingBackend.Journal());
    return new TestHost<>(backend, group, new WatchedLaunch()).run(batch);
  }

  /** Query rows that tell every row, head and element apart. */
  static TensorView queries(CommonAttentionMetadata batch) {
    int rows = batch.tokens();
    MemorySegment memory = memory(4L * rows * HEADS * HEAD_SIZE);
    for (int i = 0; i < rows * HEADS * HEAD_SIZE; i++) {
      memory.setAtIndex(ValueLayout.JAVA_FLOAT, i, i * 3 % 1009);
    }
    return TensorView.ofHost(memory, DType.FP32, rows, HEADS, HEAD_SIZE);
  }

  /** Keys and values, all alike: nobody here reads them. */
  static KvInput keys(CommonAttentionMetadata batch) {
    MemorySegment memory = memory(4L * batch.tokens() * HEAD_SIZE);
    TensorView kv = TensorView.ofHost(memory, DType.FP32, batch.tokens(), 1, HEAD_SIZE);
    return new KvInput.Dense(kv, kv);
  }

  static MemorySegment memory(long bytes) {
    return Arena.ofAuto().allocate(Math.max(bytes, 1), 256);
  }

  @Override
  public void close() {
    impl.close();
    builder.close();
    workspace.close();
  }

  /** What a forward wrote. */
  record Result(TensorView out, TensorView lse) {
    static Result poisoned(CommonAttentionMetadata batch) {
      return new Result(filled(batch.tokens(), HEADS, HEAD_SIZE), filled(batch.tokens(), HEADS));
    }

    AttentionOutput output() {
      return new AttentionOutput(out, Option.some(lse));
    }

    float[] values() {
      return out.data().toArray(ValueLayout.JAVA_FLOAT);
    }

    float[] lseValues() {
      return lse.data().toArray(ValueLayout.JAVA_FLOAT);
    }

    private static TensorView filled(long... shape) {
      long elements = 1;
      for (long size : shape) {
        elements *= size;
      }
      MemorySegment memory = Arena.ofAuto().allocate(4 * elements, 4);
      for (long i = 0; i < elements; i++) {
        memory.setAtIndex(ValueLayout.JAVA_FLOAT, i, POISON);
      }
      return TensorView.ofHost(memory, DType.FP32, shape);
    }
  }
}
