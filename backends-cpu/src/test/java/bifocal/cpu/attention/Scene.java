package bifocal.cpu.attention;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.HostLaunchContext;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvScales;
import bifocal.core.device.Device;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionType;
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
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;

/**
 * One layer on a CPU backend with its cache and workspace, and one batch of random numbers. Every
 * block's unwritten tail holds NaN, and outputs hold NaN before each run.
 */
final class Scene implements AutoCloseable {
  private static final BatchLimits LIMITS = new BatchLimits(16, 4096, 1 << 20);

  final Arena arena = Arena.ofConfined();
  final AttentionLayerSpec.Dense layer;
  final LayerGroup group;
  final KvCacheSpec spec;
  final LayerParameters parameters;
  final Random random;
  final HostLaunchContext launch = new HostLaunchContext(AttentionObserver.NONE);

  Scene(AttentionLayerSpec.Dense layer, int blockSize, KvScales scales, long seed) {
    this.layer = layer;
    this.group = LayerGroup.of("layer", layer);
    this.random = new Random(seed);
    this.spec =
        new KvCacheSpec(
            CpuPackedLayout.INSTANCE,
            layer.kvCacheDtype().resolve(layer.dtype()),
            blockSize,
            layer.numKvHeads(),
            layer.headSize(),
            layer.headSizeV(),
            scales);
    this.parameters =
        new LayerParameters(
            layer.sinks() ? Option.some(perHead(1)) : Option.none(),
            layer.alibi() ? Option.some(perHead(0.1f)) : Option.none());
  }

  /** A request: queries, keys, and images as first and last positions. */
  record Request(int queryLen, int seqLen, int... images) {
    static Request of(int queryLen, int seqLen, int... images) {
      return new Request(queryLen, seqLen, images);
    }
  }

  /** What a run left behind. */
  record Result(CommonAttentionMetadata batch, AttentionOutput output, Agreement agreement) {
    float out(int token, int head, int d) {
      TensorView view = output.out();
      long element = token * view.stride(0) + head * view.stride(1) + d;
      return NarrowFloats.load(view.data(), element * view.dtype().bytes(), view.dtype());
    }

    float lse(int token, int head) {
      TensorView view = output.lse().get();
      return view.data().getAtIndex(ValueLayout.JAVA_FLOAT, token * view.stride(0) + head);
    }
  }

  /** Fills a cache, runs the requests and compares with the reference. */
  Result run(AttentionBackend<CpuAttentionMetadata> backend, Request... requests) {
    KvCacheView cache = cache(requests);
    CommonAttentionMetadata batch = batch(requests);
    TensorView q = random(layer.dtype(), 1, batch.tokens(), layer.numHeads(), layer.headSize());
    return run(backend, cache, batch, q);
  }

  Result run(
      AttentionBackend<CpuAttentionMetadata> backend,
      KvCacheView cache,
      CommonAttentionMetadata batch,
      TensorView q) {
    AttentionOutput output = output(batch.tokens());
    WorkspacePlan plan = backend.workspace(group, spec, LIMITS);
    Workspace workspace =
        Workspace.wrap(arena.allocate(plan.totalBytes(1), WorkspacePlan.ALIGNMENT), plan, 1);
    workspace.memory().fill((byte) 0xFF);
    try (Workspace.Step step = workspace.openStep();
        AttentionImpl<CpuAttentionMetadata> impl = backend.createImpl(layer, parameters, spec)) {
      CpuAttentionMetadata metadata =
          backend.createBuilder(group, spec).build(new StepContext(launch, step, 0), group, batch);
      impl.forward(launch, q, cache, metadata, output);
    }
    return new Result(batch, output, agreement(q, KeyValues.cached(cache, batch), batch, output));
  }

  Agreement agreement(
      TensorView q, KeyValues keys, CommonAttentionMetadata batch, AttentionOutput output) {
    return Agreement.of(ReferenceAttention.of(layer, parameters).all(q, keys, batch), output);
  }

  /** Writes random keys and values of every request through the backend. */
  KvCacheView filledBy(AttentionBackend<CpuAttentionMetadata> backend, Request... requests) {
    KvCacheView cache = emptyCache(requests);
    long tokens = 0;
    for (Request request : requests) {
      tokens += request.seqLen();
    }
    MemorySegment slots = arena.allocate(8 * Math.max(1, tokens), 8);
    long at = 0;
    for (int r = 0; r < requests.length; r++) {
      for (int t = 0; t < requests[r].seqLen(); t++) {
        slots.setAtIndex(ValueLayout.JAVA_LONG, at++, slot(requests, r, t));
      }
    }
    TensorView k = random(layer.dtype(), 1, tokens, layer.numKvHeads(), layer.headSize());
    TensorView v = random(layer.dtype(), 1, tokens, layer.numKvHeads(), layer.headSizeV());
    try (AttentionImpl<CpuAttentionMetadata> impl = backend.createImpl(layer, parameters, spec)) {
      impl.writeKv(
          launch,
          new KvInput.Dense(k, v),
          cache,
          new SlotMapping(TensorView.ofHost(slots, DType.INT64, tokens)));
    }
    return cache;
  }

  /** A cache that holds random keys and values of every request, written by the layout. */
  KvCacheView cache(Request... requests) {
    KvCacheView cache = emptyCache(requests);
    KvCacheView.TokenAccess tokens = cache.tokens(spec.layout());
    float[] key = new float[layer.headSize()];
    float[] value = new float[layer.headSizeV()];
    for (int r = 0; r < requests.length; r++) {
      for (int t = 0; t < requests[r].seqLen(); t++) {
        for (int head = 0; head < layer.numKvHeads(); head++) {
          fill(key);
          fill(value);
          tokens.write(slot(requests, r, t), head, key, value);
        }
      }
    }
    return cache;
  }

  KvCacheView emptyCache(Request... requests) {
    long blocks = 1;
    for (Request request : requests) {
      blocks += spec.blocksFor(request.seqLen());
    }
    MemorySegment memory = arena.allocate(blocks * spec.blockBytes(), 64);
    // All ones is NaN in every floating-point type.
    memory.asSlice(spec.blockBytes()).fill((byte) 0xFF);
    return KvCacheView.wrap(memory, spec);
  }

  /** Blocks run backwards, so that neighbours in a sequence are no neighbours in memory. */
  int block(Request[] requests, int request, int index) {
    int before = 0;
    int all = 0;
    for (int r = 0; r < requests.length; r++) {
      before += r < request ? spec.blocksFor(requests[r].seqLen()) : 0;
      all += spec.blocksFor(requests[r].seqLen());
    }
    return all - before - index;
  }

  long slot(Request[] requests, int request, int token) {
    return (long) block(requests, request, token / spec.blockSize()) * spec.blockSize()
        + token % spec.blockSize();
  }

  CommonAttentionMetadata batch(Request... requests) {
    int[] starts = new int[requests.length + 1];
    int[] lengths = new int[requests.length];
    int[][] images = new int[requests.length][];
    int columns = 1;
    for (int r = 0; r < requests.length; r++) {
      starts[r + 1] = starts[r] + requests[r].queryLen();
      lengths[r] = requests[r].seqLen();
      images[r] = requests[r].images();
      columns = Math.max(columns, spec.blocksFor(lengths[r]));
    }
    MemorySegment table = arena.allocate(4L * columns * Math.max(1, requests.length), 4);
    for (int r = 0; r < requests.length; r++) {
      for (int b = 0; b < spec.blocksFor(lengths[r]); b++) {
        table.setAtIndex(ValueLayout.JAVA_INT, (long) r * columns + b, block(requests, r, b));
      }
    }
    CommonAttentionMetadata.Builder builder =
        CommonAttentionMetadata.builder(
                starts,
                lengths,
                TensorView.ofHost(table, DType.INT32, requests.length, columns),
                new SlotMapping(
                    TensorView.ofHost(
                        arena.allocate(8L * Math.max(1, starts[requests.length]), 8),
                        DType.INT64,
                        starts[requests.length])))
            .images(ImageRanges.of(images, requests.length));
    return (layer.type() == AttentionType.ENCODER_DECODER ? builder.independentKeys() : builder)
        .build();
  }

  AttentionOutput output(int tokens) {
    return new AttentionOutput(
        poisoned(layer.dtype(), tokens, layer.numHeads(), layer.headSizeV()),
        Option.some(poisoned(DType.FP32, tokens, layer.numHeads())));
  }

  TensorView poisoned(DType type, long... shape) {
    TensorView view = random(type, 1, shape);
    view.data().fill((byte) 0xFF);
    return view;
  }

  TensorView random(DType type, float scale, long... shape) {
    long elements = 1;
    for (long size : shape) {
      elements *= size;
    }
    MemorySegment memory = arena.allocate(Math.max(64, elements * type.bytes()), 64);
    for (long i = 0; i < elements; i++) {
      NarrowFloats.store(memory, i * type.bytes(), type, scale * (float) random.nextGaussian());
    }
    return TensorView.of(memory, type, Device.HOST, shape);
  }

  private TensorView perHead(float scale) {
    return random(DType.FP32, scale, layer.numHeads());
  }

  private void fill(float[] numbers) {
    for (int i = 0; i < numbers.length; i++) {
      numbers[i] = (float) random.nextGaussian();
    }
  }

  @Override
  public void close() {
    arena.close();
  }
}
