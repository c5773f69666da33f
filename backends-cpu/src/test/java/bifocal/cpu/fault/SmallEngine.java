package bifocal.cpu.fault;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.HostLaunchContext;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.BlockTable;
import bifocal.core.cache.KvBlocks;
import bifocal.core.cache.KvCachePool;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvScales;
import bifocal.core.engine.EnginePlan;
import bifocal.core.engine.GroupPlan;
import bifocal.core.engine.GroupRuntime;
import bifocal.core.engine.GroupStep;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.NarrowFloats;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.cpu.cache.CpuPackedLayout;
import bifocal.reference.Agreement;
import bifocal.reference.KeyValues;
import bifocal.reference.ReferenceAttention;
import bifocal.reference.Tolerance;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Random;

/** A host: two layers of one group, our pool and block table, any thread for each step. */
final class SmallEngine implements AutoCloseable {
  static final int ROWS = 4;
  static final int ROOM = 320;
  static final Dense LAYER =
      Dense.decoder(
          8,
          2,
          64,
          DType.BF16,
          AttentionMask.CAUSAL.withWindow(40).withImages(ImageMask.CLAMP_PAST));

  final Arena tensors = Arena.ofShared();
  final Arena workspaceMemory = Arena.ofShared();
  final KvCachePool pool;
  final KvBlocks blocks;
  final BlockTable table;
  final Workspace workspace;
  final GroupRuntime<?> runtime;
  final Dense layer;

  private final TensorView q;
  private final TensorView k;
  private final TensorView v;
  private final MemorySegment slots;
  private final AttentionOutput output;
  private final MemorySegment written;

  SmallEngine(AttentionBackend<?> backend, Dense layer, KvScales scales, int numBlocks) {
    this.layer = layer;
    KvCacheSpec spec =
        new KvCacheSpec(
            CpuPackedLayout.INSTANCE,
            layer.kvCacheDtype().resolve(layer.dtype()),
            32,
            layer.numKvHeads(),
            layer.headSize(),
            layer.headSizeV(),
            scales);
    LayerGroup group = new LayerGroup("group", layer, Vector.of("first", "second"));
    GroupPlan plan = new GroupPlan(group, backend, spec);
    EnginePlan engine =
        EnginePlan.of(Vector.of(plan), Vector.of(new BatchLimits(ROWS, ROWS * ROOM, ROOM)));
    this.pool = KvCachePool.allocate(Vector.of(plan.blocks(numBlocks)));
    this.blocks = pool.group("group");
    this.table = BlockTable.allocate(blocks, ROWS, ROOM);
    this.written = tensors.allocate(Long.BYTES * (long) ROWS * ROOM, 8);
    this.workspace =
        Workspace.wrap(
            workspaceMemory.allocate(engine.workspaceBytes(1), WorkspacePlan.ALIGNMENT),
            engine.workspace(),
            1);
    this.runtime = plan.open(name -> LayerParameters.NONE);
    Random random = new Random(1);
    this.q = numbers(random, layer.numHeads(), layer.headSize());
    this.k = numbers(random, layer.numKvHeads(), layer.headSize());
    this.v = numbers(random, layer.numKvHeads(), layer.headSizeV());
    this.slots = written;
    this.output =
        new AttentionOutput(
            numbers(random, layer.numHeads(), layer.headSizeV()),
            Option.some(
                TensorView.ofHost(
                    tensors.allocate(4L * ROWS * ROOM * layer.numHeads(), 64),
                    DType.FP32,
                    ROWS * ROOM,
                    layer.numHeads())));
  }

  private TensorView numbers(Random random, int heads, int size) {
    long count = (long) ROWS * ROOM * heads * size;
    MemorySegment memory = tensors.allocate(count * layer.dtype().bytes(), 64);
    for (long i = 0; i < count; i++) {
      NarrowFloats.store(
          memory, i * layer.dtype().bytes(), layer.dtype(), (float) random.nextGaussian());
    }
    return TensorView.ofHost(memory, layer.dtype(), ROWS * ROOM, heads, size);
  }

  static LaunchContext launch() {
    return new HostLaunchContext(AttentionObserver.NONE);
  }

  /** Room for a row's next tokens, whose slots are appended at a token of the batch. */
  CommonAttentionMetadata admit(int... tokens) {
    return admit(new int[tokens.length][0], tokens);
  }

  /** Admits rows' next tokens, some of them images at absolute positions. */
  CommonAttentionMetadata admit(int[][] images, int... tokens) {
    int[] starts = new int[tokens.length + 1];
    int[] lengths = new int[tokens.length];
    for (int row = 0; row < tokens.length; row++) {
      table.append(row, tokens[row], slots, starts[row]);
      starts[row + 1] = starts[row] + tokens[row];
      lengths[row] = table.tokens(row);
    }
    return CommonAttentionMetadata.builder(
            starts,
            lengths,
            table.tensor(),
            new SlotMapping(TensorView.ofHost(slots, DType.INT64, starts[tokens.length])))
        .images(ImageRanges.of(images, tokens.length))
        .build();
  }

  /** Runs a batch through both layers. */
  void run(LaunchContext launch, CommonAttentionMetadata batch) {
    try (Workspace.Step lease = workspace.openStep()) {
      GroupStep<?> step = runtime.step(new StepContext(launch, lease, 0), batch);
      for (int i = 0; i < 2; i++) {
        write(step, i);
        forward(step, i);
      }
    }
  }

  /** Runs one layer of a batch over other memory of the queries. */
  void runWithQueries(LaunchContext launch, CommonAttentionMetadata batch, MemorySegment memory) {
    try (Workspace.Step lease = workspace.openStep()) {
      GroupStep<?> step = runtime.step(new StepContext(launch, lease, 0), batch);
      write(step, 0);
      TensorView other = TensorView.ofHost(memory, layer.dtype(), q.size(0), q.size(1), q.size(2));
      step.forward(0, other, blocks.view("first"), output);
    }
  }

  long queryBytes() {
    return q.data().byteSize();
  }

  void write(GroupStep<?> step, int index) {
    step.writeKv(index, new KvInput.Dense(k, v), blocks.view(name(index)));
  }

  void forward(GroupStep<?> step, int index) {
    step.forward(index, q, blocks.view(name(index)), output);
  }

  /** Whether what the last layer left behind is what the reference computes. */
  boolean isRight(CommonAttentionMetadata batch) {
    Agreement agreement =
        Agreement.of(
            ReferenceAttention.of(layer, LayerParameters.NONE)
                .all(q, KeyValues.cached(blocks.view("second"), batch), batch),
            output);
    return agreement.within(Tolerance.of(layer.dtype()));
  }

  /** The bytes of one layer's cache. */
  byte[] cacheBytes() {
    return blocks.view("first").memory().toArray(ValueLayout.JAVA_BYTE);
  }

  boolean cacheIs(byte[] bytes) {
    return Arrays.equals(cacheBytes(), bytes);
  }

  boolean outputIs(SmallEngine other) {
    return output.out().data().mismatch(other.output.out().data()) == -1
        && output.lse().get().data().mismatch(other.output.lse().get().data()) == -1;
  }

  private static String name(int index) {
    return index == 0 ? "first" : "second";
  }

  @Override
  public void close() {
    runtime.close();
    workspace.close();
    table.close();
    pool.close();
    if (workspaceMemory.scope().isAlive()) {
      workspaceMemory.close();
    }
    if (tensors.scope().isAlive()) {
      tensors.close();
    }
  }
}
