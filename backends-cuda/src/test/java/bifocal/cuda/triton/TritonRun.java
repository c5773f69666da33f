package bifocal.cuda.triton;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvLayout;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
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
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.memory.StreamBlockMemory;
import bifocal.cuda.pack.CacheFormat;
import bifocal.cuda.pack.Specialisation.Attention;
import bifocal.cuda.triton.TritonContract.Kind;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/** A layer driven step by step, where a test looks at more than the numbers. */
public final class TritonRun<M extends AttentionMetadata> implements AutoCloseable {
  public static final int REQUESTS = 4;
  public static final int TOKENS = 64;
  public static final int LONGEST = 400;

  private final List<AutoCloseable> parts = new ArrayList<>();
  private final Arena arena = Arena.ofShared();
  public final CudaTestDevice device;
  public final Dense layer;
  public final KvCacheSpec spec;
  public final KvCacheView cache;
  public final TensorView q;
  public final TensorView k;
  public final TensorView v;
  public final AttentionOutput output;
  public final LayerGroup group;
  public final Workspace workspace;
  public final AttentionMetadataBuilder<M> builder;
  public final AttentionImpl<M> impl;
  private final AttentionBackend<M> backend;

  /** Over a cache of so many blocks. */
  static TritonRun<?> open(TritonDevice device, Kind kind, int blocks) {
    return open(
        TritonContract.backend(kind, TritonHost.with(device)),
        device,
        AttentionMask.CAUSAL,
        blocks);
  }

  /** The same for a layer whose images see themselves. */
  static TritonRun<?> openWithImages(TritonDevice device, Kind kind, int blocks) {
    return open(
        TritonContract.backend(kind, TritonHost.with(device)),
        device,
        AttentionMask.CAUSAL.withImages(ImageMask.OVERRIDE),
        blocks);
  }

  /** Over the windows' kernels of one shape, of which the pack may lack some. */
  static TritonRun<?> openShape(TritonDevice device, Attention shape, int blocks) {
    return over(
        new TritonCausalBackend(TritonHost.with(device)),
        device.context(),
        PackShapes.layer(shape, AttentionMask.CAUSAL, 2),
        KvLayouts.NHD,
        shape.blockSize(),
        blocks);
  }

  private static <M extends AttentionMetadata> TritonRun<M> open(
      AttentionBackend<M> backend, TritonDevice device, AttentionMask mask, int blocks) {
    Attention shape = shape(device);
    return over(
        backend,
        device.context(),
        PackShapes.layer(shape, mask, 2),
        KvLayouts.NHD,
        shape.blockSize(),
        blocks);
  }

  /** A layer of any backend, over a cache of so many blocks. */
  public static <M extends AttentionMetadata> TritonRun<M> over(
      AttentionBackend<M> backend,
      CudaContext context,
      Dense layer,
      KvLayout layout,
      int blockSize,
      int blocks) {
    return new TritonRun<>(backend, context, layer, layout, blockSize, blocks);
  }

  private TritonRun(
      AttentionBackend<M> backend,
      CudaContext context,
      Dense layer,
      KvLayout layout,
      int blockSize,
      int blocks) {
    this.device = keep(new CudaTestDevice(context, true));
    this.backend = backend;
    try {
      this.layer = layer;
      this.spec =
          new KvCacheSpec(
              layout,
              layer.kvCacheDtype().resolve(layer.dtype()),
              blockSize,
              layer.numKvHeads(),
              layer.headSize(),
              layer.headSize(),
              KvScales.ONE);
      this.cache =
          KvCacheView.wrap(
              this.device.allocate(spec.blockBytes() * blocks),
              spec,
              this.device.device(),
              blocks,
              spec.blockBytes());
      this.q = random(1, TOKENS, layer.numHeads());
      this.k = random(2, LONGEST, layer.numKvHeads());
      this.v = random(3, LONGEST, layer.numKvHeads());
      this.output =
          new AttentionOutput(
              tensor(layer.dtype(), TOKENS, layer.numHeads(), layer.headSize()),
              Option.some(tensor(DType.FP32, TOKENS, layer.numHeads())));
      this.group = LayerGroup.of("test", layer);
      WorkspacePlan plan =
          backend.workspace(group, spec, new BatchLimits(REQUESTS, TOKENS, LONGEST));
      this.workspace =
          Workspace.wrap(
              this.device.allocate(plan.totalBytes(1)),
              plan,
              1,
              new StreamBlockMemory(this.device.stream()));
      this.builder = keep(backend.createBuilder(group, spec));
      this.impl = keep(backend.createImpl(layer, LayerParameters.NONE, spec));
    } catch (RuntimeException failure) {
      try {
        close();
      } catch (RuntimeException second) {
        failure.addSuppressed(second);
      }
      throw failure;
    }
  }

  /** Another layer over the same cache; the run closes it. */
  AttentionImpl<M> anotherLayer() {
    return keep(backend.createImpl(layer, LayerParameters.NONE, spec));
  }

  /** A shape that every pack for tests has with both variants. */
  private static Attention shape(TritonDevice device) {
    return PackShapes.of(device.pack(), Kind.SPLIT)
        .filter(shape -> shape.cache().equals(CacheFormat.SAME))
        .filter(shape -> shape.dtype() == DType.BF16 && !shape.softcap() && !shape.alibi())
        .filter(shape -> shape.blockSize() == 16)
        .head();
  }

  private <T extends AutoCloseable> T keep(T part) {
    parts.add(part);
    return part;
  }

  private TensorView tensor(DType type, long... shape) {
    long elements = 1;
    for (long size : shape) {
      elements *= size;
    }
    return TensorView.of(device.allocate(elements * type.bytes()), type, device.device(), shape);
  }

  private TensorView random(long seed, int tokens, int heads) {
    TensorView tensor = tensor(layer.dtype(), tokens, heads, layer.headSize());
    MemorySegment host = MemorySegment.ofArray(new byte[(int) tensor.data().byteSize()]);
    Random random = new Random(seed);
    for (long at = 0; at < host.byteSize(); at += layer.dtype().bytes()) {
      NarrowFloats.store(host, at, layer.dtype(), (float) random.nextGaussian());
    }
    device.upload(host, tensor.data());
    return tensor;
  }

  /** Requests of one query each; those at and beyond {@code live} are padding. */
  public CommonAttentionMetadata decodes(int requests, int live, int firstBlock, int... seqLens) {
    int[] starts = new int[requests + 1];
    for (int r = 0; r < requests; r++) {
      starts[r + 1] = r + 1;
    }
    return batch(starts, seqLens, live, firstBlock);
  }

  /** Requests of equally many queries; those at and beyond {@code live} are padding. */
  CommonAttentionMetadata uniform(int requests, int live, int queries, int... seqLens) {
    int[] starts = new int[requests + 1];
    for (int r = 0; r < requests; r++) {
      starts[r + 1] = starts[r] + queries;
    }
    return batch(starts, Arrays.copyOf(seqLens, requests), live, 1);
  }

  /** A batch whose request {@code r} has blocks in a row of its own, from a first block on. */
  public CommonAttentionMetadata batch(int[] starts, int[] seqLens, int live, int firstBlock) {
    return describe(starts, seqLens, firstBlock).live(live).build();
  }

  /** A batch whose first request has an image. */
  public CommonAttentionMetadata withImage(
      int[] starts, int[] seqLens, int firstBlock, int imageFirst, int imageLast) {
    int[][] images = new int[seqLens.length][0];
    images[0] = new int[] {imageFirst, imageLast};
    return describe(starts, seqLens, firstBlock)
        .images(ImageRanges.of(images, seqLens.length))
        .build();
  }

  private CommonAttentionMetadata.Builder describe(int[] starts, int[] seqLens, int firstBlock) {
    int requests = starts.length - 1;
    int columns = spec.blocksFor(LONGEST);
    MemorySegment table = arena.allocate(ValueLayout.JAVA_INT, (long) requests * columns);
    for (int i = 0; i < requests * columns; i++) {
      table.setAtIndex(ValueLayout.JAVA_INT, i, firstBlock + i);
    }
    MemorySegment slots = arena.allocate(ValueLayout.JAVA_LONG, starts[requests]);
    slots.fill((byte) 0xFF);
    return CommonAttentionMetadata.builder(
        starts,
        seqLens,
        TensorView.ofHost(table, DType.INT32, requests, columns),
        new SlotMapping(TensorView.ofHost(slots, DType.INT64, starts[requests])));
  }

  /** Blocks that the tables of {@link #batch} name from their first block on. */
  public int tableBlocks() {
    return REQUESTS * spec.blocksFor(LONGEST);
  }

  /** Slots of a request's first tokens, in host memory. */
  SlotMapping slots(int request, int tokens, int firstBlock) {
    MemorySegment slots = arena.allocate(ValueLayout.JAVA_LONG, tokens);
    long first = firstBlock + (long) request * spec.blocksFor(LONGEST);
    for (int i = 0; i < tokens; i++) {
      slots.setAtIndex(ValueLayout.JAVA_LONG, i, first * spec.blockSize() + i);
    }
    return new SlotMapping(TensorView.ofHost(slots, DType.INT64, tokens));
  }

  /** Writes the keys and values of a request's first tokens. */
  public void write(int request, int tokens, int firstBlock) {
    write(impl, slots(request, tokens, firstBlock));
  }

  /** The same by another backend's implementation. */
  public void writeBy(AttentionImpl<?> writer, int request, int tokens, int firstBlock) {
    write(writer, slots(request, tokens, firstBlock));
  }

  /** Writes the first keys and values to some slots, as a layer does. */
  void write(AttentionImpl<?> layer, SlotMapping slots) {
    int tokens = (int) slots.tokens();
    layer.writeKv(
        device.launch(), new KvInput.Dense(k.rows(0, tokens), v.rows(0, tokens)), cache, slots);
  }

  public M build(Workspace.Step step, CommonAttentionMetadata batch) {
    return builder.build(new StepContext(device.launch(), step, 0), group, batch);
  }

  public void forward(M metadata) {
    impl.forward(device.launch(), q, cache, metadata, output);
  }

  /** The same for a host that asks for no log-sum-exps. */
  public void forwardWithoutLse(M metadata) {
    impl.forward(device.launch(), q, cache, metadata, AttentionOutput.of(output.out()));
  }

  /** Makes every number of the output NaN. */
  public void poison() {
    device.stream().fill(output.out().data(), (byte) 0xFF);
    device.stream().fill(output.lse().get().data(), (byte) 0xFF);
  }

  /** Bytes of the output's rows. */
  public byte[] out(int rows) {
    byte[] bytes = new byte[(int) (rows * output.out().stride(0) * layer.dtype().bytes())];
    device.download(output.out().data().asSlice(0, bytes.length), MemorySegment.ofArray(bytes));
    return bytes;
  }

  @Override
  public void close() {
    List<RuntimeException> failures = new ArrayList<>();
    for (AutoCloseable part : parts.reversed()) {
      try {
        part.close();
      } catch (Exception e) {
        failures.add(e instanceof RuntimeException known ? known : new RuntimeException(e));
      }
    }
    parts.clear();
    if (arena.scope().isAlive()) {
      arena.close();
    }
    if (!failures.isEmpty()) {
      failures.subList(1, failures.size()).forEach(failures.getFirst()::addSuppressed);
      throw failures.getFirst();
    }
  }
}
