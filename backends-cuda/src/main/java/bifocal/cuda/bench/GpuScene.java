package bifocal.cuda.bench;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.device.Device;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.memory.CudaMemory;
import bifocal.cuda.memory.DeviceBlock;
import bifocal.cuda.memory.LaunchMemory;
import bifocal.cuda.memory.StreamBlockMemory;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;

/**
 * A workload on the device, ready to run: random queries, keys and values, a cache of shuffled
 * blocks, and the metadata of one step.
 *
 * @param <M> metadata of the backend
 */
final class GpuScene<M extends AttentionMetadata> implements AutoCloseable {
  private final GpuWork work;
  private final CudaLaunchContext launch;
  private final CudaMemory memory;
  private final List<AutoCloseable> parts = new ArrayList<>();
  private final LaunchMemory tables = new LaunchMemory("the scene");
  private final int[] table;
  private final KvCacheView cache;
  private final TensorView q;
  private final AttentionOutput output;
  private final AttentionOutput outputAlone;
  private final LayerGroup group;
  private final AttentionMetadataBuilder<M> builder;
  private final AttentionImpl<M> impl;
  private final Workspace workspace;
  private final CommonAttentionMetadata batch;
  private Workspace.Step step;
  private M metadata;

  GpuScene(
      AttentionBackend<M> backend,
      GpuWork work,
      CudaLaunchContext launch,
      CudaMemory memory,
      RandomNumbers numbers) {
    this.work = work;
    this.launch = launch;
    this.memory = memory;
    try {
      Dense layer = work.layer();
      KvCacheSpec spec =
          new KvCacheSpec(
              KvLayouts.NHD,
              layer.kvCacheDtype().resolve(layer.dtype()),
              GpuWork.BLOCK_SIZE,
              layer.numKvHeads(),
              layer.headSize(),
              layer.headSizeV(),
              KvScales.ONE);
      this.table = shuffled(work.batch() * spec.blocksFor(work.keys()));
      Device place = launch.device();
      int blocks = table.length + 1;
      MemorySegment blockMemory = memory("cache", spec.blockBytes() * blocks);
      numbers.fill(launch.queue(), blockMemory, spec.dtype().elementType().get());
      this.cache = KvCacheView.wrap(blockMemory, spec, place, blocks, spec.blockBytes());
      long elements = (long) work.tokens() * layer.numHeads() * layer.headSize();
      MemorySegment queries = memory("queries", 2 * elements);
      numbers.fill(launch.queue(), queries, DType.BF16);
      this.q =
          TensorView.of(
              queries, DType.BF16, place, work.tokens(), layer.numHeads(), layer.headSize());
      this.output =
          new AttentionOutput(
              TensorView.of(
                  memory("output", 2 * elements),
                  DType.BF16,
                  place,
                  work.tokens(),
                  layer.numHeads(),
                  layer.headSize()),
              Option.some(
                  TensorView.of(
                      memory("log-sum-exp", 4L * work.tokens() * layer.numHeads()),
                      DType.FP32,
                      place,
                      work.tokens(),
                      layer.numHeads())));
      this.outputAlone = AttentionOutput.of(output.out());
      this.group = LayerGroup.of("bench", layer);
      WorkspacePlan plan =
          backend.workspace(group, spec, new BatchLimits(work.batch(), work.tokens(), work.keys()));
      this.workspace =
          Workspace.wrap(
              memory("workspace", plan.totalBytes(1)),
              plan,
              1,
              new StreamBlockMemory(launch.queue()));
      this.builder = backend.createBuilder(group, spec);
      parts.add(builder);
      this.impl = backend.createImpl(layer, LayerParameters.NONE, spec);
      parts.add(impl);
      this.batch = describe(spec);
      this.step = workspace.openStep();
      this.metadata = builder.build(new StepContext(launch, step, 0), group, batch);
    } catch (RuntimeException failure) {
      try {
        close();
      } catch (RuntimeException second) {
        failure.addSuppressed(second);
      }
      throw failure;
    }
  }

  private MemorySegment memory(String name, long bytes) {
    DeviceBlock block = memory.acquire("bench " + name, bytes);
    parts.add(block);
    return block.segment().asSlice(0, bytes);
  }

  private static int[] shuffled(int count) {
    List<Integer> blocks = new ArrayList<>();
    for (int block = 1; block <= count; block++) {
      blocks.add(block);
    }
    Collections.shuffle(blocks, new Random(11));
    return blocks.stream().mapToInt(Integer::intValue).toArray();
  }

  private CommonAttentionMetadata describe(KvCacheSpec spec) {
    int[] starts = new int[work.batch() + 1];
    int[] seqLens = new int[work.batch()];
    int[][] images = new int[work.batch()][];
    for (int r = 0; r < work.batch(); r++) {
      starts[r + 1] = starts[r] + work.queries();
      seqLens[r] = work.keys();
      images[r] = work.images(r).toJavaStream().mapToInt(Integer::intValue).toArray();
    }
    TensorView blocks =
        TensorView.ofHost(
            tables.arena().allocateFrom(ValueLayout.JAVA_INT, table),
            DType.INT32,
            work.batch(),
            spec.blocksFor(work.keys()));
    TensorView slots =
        TensorView.ofHost(
            tables.arena().allocate(ValueLayout.JAVA_LONG, work.tokens()),
            DType.INT64,
            work.tokens());
    return CommonAttentionMetadata.builder(starts, seqLens, blocks, new SlotMapping(slots))
        .images(ImageRanges.of(images, work.batch()))
        .build();
  }

  GpuWork work() {
    return work;
  }

  /** Launches the layer, which is not asked for log-sum-exps, as in serving. */
  void forward() {
    impl.forward(launch, q, cache, metadata, outputAlone);
  }

  /** The same with log-sum-exps. */
  void forwardWithLse() {
    impl.forward(launch, q, cache, metadata, output);
  }

  /** Builds the step anew. */
  void rebuild() {
    step.close();
    step = workspace.openStep();
    metadata = builder.build(new StepContext(launch, step, 0), group, batch);
  }

  M metadata() {
    return metadata;
  }

  CudaLaunchContext launch() {
    return launch;
  }

  KvCacheView cache() {
    return cache;
  }

  TensorView q() {
    return q;
  }

  AttentionOutput output() {
    return output;
  }

  /** Block of a sequence. */
  int block(int sequence, int index) {
    return table[sequence * (table.length / work.batch()) + index];
  }

  @Override
  public void close() {
    launch.queue().synchronize();
    for (AutoCloseable part : parts.reversed()) {
      try {
        part.close();
      } catch (RuntimeException e) {
        throw e;
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    }
    parts.clear();
    tables.close();
  }
}
