package bifocal.benchmarks;

import bifocal.composite.guice.AttentionBackends;
import bifocal.composite.guice.BifocalInjector;
import bifocal.composite.guice.PlatformModules;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.HostLaunchContext;
import bifocal.core.backend.KvContract;
import bifocal.core.backend.KvContract.Party;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.BlockLease;
import bifocal.core.cache.KvBlocks;
import bifocal.core.cache.KvCachePool;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvScales;
import bifocal.core.device.DeviceProfile;
import bifocal.core.engine.GroupRuntime;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import io.vavr.collection.HashSet;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.SplittableRandom;

/**
 * A small layer group over a backend, and one batch of a kind for it. The cache holds random keys
 * and values, so nothing is computed over zeros.
 *
 * @param <M> metadata of the backend
 */
public final class StepScene<M extends AttentionMetadata> implements AutoCloseable {
  private static final int REQUESTS = 64;
  private static final int CONTEXT = 256;
  private static final int CHUNK = 32;
  private static final Dense LAYER =
      Dense.decoder(
          8,
          2,
          64,
          DType.BF16,
          AttentionMask.CAUSAL.withWindow(128).withImages(ImageMask.CLAMP_PAST));

  /** What the 64 requests of a batch do. */
  public enum Batch {
    /** One query each. */
    DECODE,
    /** Every fourth has a chunk of text, the rest one query. */
    MIXED,
    /** Every fourth has a chunk with an image, so that the batch is divided. */
    IMAGES
  }

  private final Arena arena = Arena.ofConfined();
  private final HostLaunchContext launch = new HostLaunchContext(AttentionObserver.NONE);
  private final KvCachePool pool;
  private final GroupRuntime<M> group;
  private final KvCacheView cache;
  private final CommonAttentionMetadata batch;
  private final Workspace workspace;
  private final TensorView q;
  private final AttentionOutput output;
  private final Workspace.Step step;
  private final M built;
  private long steps;

  /** A scene over the backend of a name. */
  public static StepScene<?> of(String backend, Batch kind) {
    return of(
        BifocalInjector.create(PlatformModules.detect().present())
            .getInstance(AttentionBackends.class)
            .named(BackendName.of(backend)),
        kind);
  }

  private static <M extends AttentionMetadata> StepScene<M> of(
      AttentionBackend<M> backend, Batch kind) {
    return new StepScene<>(backend, kind);
  }

  private StepScene(AttentionBackend<M> backend, Batch kind) {
    LayerGroup layers = LayerGroup.of("scene", LAYER);
    KvCacheSpec spec = contract(backend);
    int blocks = 1 + REQUESTS * spec.blocksFor(CONTEXT);
    this.pool =
        KvCachePool.allocate(
            Vector.of(new KvCachePool.Group("scene", layers.layers(), spec, blocks)));
    KvBlocks held = pool.group("scene");
    this.cache = held.view("scene");
    this.batch = batch(kind, held);
    BatchLimits limits = new BatchLimits(REQUESTS, batch.tokens(), CONTEXT);
    WorkspacePlan plan = backend.workspace(layers, spec, limits);
    this.workspace = Workspace.wrap(arena.allocate(plan.totalBytes(2), 256), plan, 2);
    this.group = GroupRuntime.open(backend, layers, spec);
    this.q = random(batch.tokens(), LAYER.numHeads(), LAYER.headSize(), 1);
    this.output =
        AttentionOutput.of(random(batch.tokens(), LAYER.numHeads(), LAYER.headSizeV(), 2));
    fill(held);
    this.step = workspace.openStep();
    this.built = group.build(new StepContext(launch, step, 0), batch);
  }

  private static KvCacheSpec contract(AttentionBackend<?> backend) {
    AttentionRequest request =
        AttentionRequest.of(
            LAYER, new DeviceProfile.Cpu(DeviceProfile.CpuIsa.GENERIC, HashSet.empty(), false));
    return KvContract.resolve(
            Party.writer(backend, request),
            Vector.of(Party.reader(backend, request)),
            LAYER,
            KvScales.ONE,
            Option.some(32))
        .get();
  }

  /** Builds one step's metadata, as a host does: with a step of its own. */
  public M build() {
    try (Workspace.Step open = workspace.openStep()) {
      return group.build(new StepContext(launch, open, ++steps), batch);
    }
  }

  /** Computes the batch built at the start. */
  public MemorySegment forward() {
    group.forward(launch, 0, q, cache, built, output);
    return output.out().data();
  }

  /** What forward wrote. */
  public TensorView output() {
    return output.out();
  }

  @Override
  public void close() {
    step.close();
    group.close();
    workspace.close();
    pool.close();
    arena.close();
  }

  private CommonAttentionMetadata batch(Batch kind, KvBlocks held) {
    int[] queryStartLoc = new int[REQUESTS + 1];
    int[] seqLens = new int[REQUESTS];
    int[][] images = new int[REQUESTS][];
    int columns = held.spec().blocksFor(CONTEXT);
    MemorySegment table = arena.allocate((long) REQUESTS * columns * Integer.BYTES, Integer.BYTES);
    for (int r = 0; r < REQUESTS; r++) {
      boolean chunk = kind != Batch.DECODE && r % 4 == 0;
      queryStartLoc[r + 1] = queryStartLoc[r] + (chunk ? CHUNK : 1);
      seqLens[r] = CONTEXT - r;
      images[r] =
          kind == Batch.IMAGES && chunk
              ? new int[] {seqLens[r] - CHUNK + 2, seqLens[r] - 3}
              : new int[0];
      BlockLease lease = held.lease(columns);
      for (int i = 0; i < columns; i++) {
        table.setAtIndex(ValueLayout.JAVA_INT, (long) r * columns + i, lease.block(i));
      }
    }
    int tokens = queryStartLoc[REQUESTS];
    MemorySegment slots = arena.allocate((long) tokens * Long.BYTES, Long.BYTES);
    for (int token = 0; token < tokens; token++) {
      slots.setAtIndex(ValueLayout.JAVA_LONG, token, SlotMapping.PADDING);
    }
    return CommonAttentionMetadata.builder(
            queryStartLoc,
            seqLens,
            TensorView.ofHost(table, DType.INT32, REQUESTS, columns),
            new SlotMapping(TensorView.ofHost(slots, DType.INT64, tokens)))
        .images(ImageRanges.of(images, REQUESTS))
        .build();
  }

  /** Writes random keys and values into every block through the backend's own writer. */
  private void fill(KvBlocks held) {
    int blockSize = held.spec().blockSize();
    int tokens = held.numBlocks() * blockSize - blockSize;
    MemorySegment slots = arena.allocate((long) tokens * Long.BYTES, Long.BYTES);
    for (int token = 0; token < tokens; token++) {
      slots.setAtIndex(ValueLayout.JAVA_LONG, token, (long) blockSize + token);
    }
    group.writeKv(
        launch,
        0,
        new KvInput.Dense(
            random(tokens, LAYER.numKvHeads(), LAYER.headSize(), 3),
            random(tokens, LAYER.numKvHeads(), LAYER.headSizeV(), 4)),
        cache,
        new SlotMapping(TensorView.ofHost(slots, DType.INT64, tokens)));
  }

  private TensorView random(int tokens, int heads, int headSize, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    MemorySegment memory = arena.allocate((long) tokens * heads * headSize * Short.BYTES, 64);
    for (long i = 0; i < memory.byteSize() / Short.BYTES; i++) {
      int bits = Float.floatToRawIntBits((float) random.nextDouble(-1, 1));
      memory.setAtIndex(ValueLayout.JAVA_SHORT, i, (short) (bits >>> 16));
    }
    return TensorView.ofHost(memory, DType.BF16, tokens, heads, headSize);
  }
}
