package bifocal.benchmarks.cpu;

import bifocal.benchmarks.cpu.Work.Request;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.HostLaunchContext;
import bifocal.core.backend.KvContract;
import bifocal.core.backend.KvContract.Party;
import bifocal.core.backend.KvInput;
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
import bifocal.core.ffi.HugePages;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.TensorView;
import io.vavr.collection.HashSet;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.SplittableRandom;

/**
 * The tensors of a work: queries, and keys and values both in a paged cache, whose blocks lie in no
 * order, and, on demand, one behind the other. Keys and values repeat after {@link #PERIOD} tokens;
 * no two that a cache line or page apart are equal.
 */
final class Scene implements AutoCloseable {
  /** Tokens whose keys and values differ. */
  static final int PERIOD = 2048;

  private static final String GROUP = "scene";

  private final Arena arena = Arena.ofShared();
  private final Work work;
  private final LayerGroup group;
  private final KvCacheSpec spec;
  private final KvCachePool pool;
  private final HostLaunchContext launch = new HostLaunchContext(AttentionObserver.NONE);
  private final MemorySegment keys;
  private final MemorySegment values;
  private final MemorySegment table;
  private final MemorySegment slots;
  private final int columns;
  private final TensorView q;
  private Option<Contiguous> contiguous = Option.none();

  /**
   * Keys and values [request][KV head][token][head size], one request behind the other.
   *
   * @param starts first token of each request, times KV heads
   */
  record Contiguous(MemorySegment k, MemorySegment v, long[] starts) {}

  <M extends AttentionMetadata> Scene(Work work, AttentionBackend<M> writer) {
    this.work = work;
    Dense layer =
        Dense.decoder(Work.HEADS, Work.KV_HEADS, work.headSize(), work.dtype(), work.mask())
            .withKvCacheDtype(work.cached());
    this.group = LayerGroup.of(GROUP, layer);
    this.spec = contract(writer, layer, work.blockSize());
    int blocks = work.requests().map(r -> spec.blocksFor(r.seqLen())).sum().intValue();
    this.pool =
        KvCachePool.allocate(
            Vector.of(new KvCachePool.Group(GROUP, group.layers(), spec, 1 + blocks)));
    long rowNumbers = (long) Work.KV_HEADS * work.headSize();
    this.keys = Numbers.random(arena, work.dtype(), PERIOD * rowNumbers, 1);
    this.values = Numbers.random(arena, work.dtype(), PERIOD * rowNumbers, 2);
    this.columns = spec.blocksFor(work.longest());
    this.table = arena.allocate((long) work.requests().size() * columns * Integer.BYTES, 64);
    this.slots = arena.allocate((long) work.queryTokens() * Long.BYTES, 64);
    fillTable(blocks);
    for (long t = 0; t < work.queryTokens(); t++) {
      slots.setAtIndex(ValueLayout.JAVA_LONG, t, SlotMapping.PADDING);
    }
    this.q =
        TensorView.ofHost(
            Numbers.random(
                arena, work.dtype(), (long) work.queryTokens() * Work.HEADS * work.headSize(), 3),
            work.dtype(),
            work.queryTokens(),
            Work.HEADS,
            work.headSize());
    writeCache(writer);
  }

  private static KvCacheSpec contract(AttentionBackend<?> backend, Dense layer, int blockSize) {
    AttentionRequest request =
        AttentionRequest.of(
            layer, new DeviceProfile.Cpu(DeviceProfile.CpuIsa.GENERIC, HashSet.empty(), false));
    return KvContract.resolve(
            Party.writer(backend, request),
            Vector.of(Party.reader(backend, request)),
            layer,
            KvScales.ONE,
            Option.some(blockSize))
        .get();
  }

  private void fillTable(int blocks) {
    BlockLease lease = pool.group(GROUP).lease(blocks);
    int[] order = new int[blocks];
    SplittableRandom random = new SplittableRandom(4);
    for (int i = 0; i < blocks; i++) {
      int other = random.nextInt(i + 1);
      order[i] = order[other];
      order[other] = lease.block(i);
    }
    int at = 0;
    for (int r = 0; r < work.requests().size(); r++) {
      for (int i = 0; i < spec.blocksFor(work.requests().get(r).seqLen()); i++) {
        table.setAtIndex(ValueLayout.JAVA_INT, (long) r * columns + i, order[at++]);
      }
    }
  }

  private <M extends AttentionMetadata> void writeCache(AttentionBackend<M> writer) {
    MemorySegment into = arena.allocate((long) PERIOD * Long.BYTES, 64);
    try (AttentionImpl<M> impl = writer.createImpl(group.spec(), LayerParameters.NONE, spec)) {
      for (int r = 0; r < work.requests().size(); r++) {
        for (int from = 0; from < work.requests().get(r).seqLen(); from += PERIOD) {
          int count = Math.min(PERIOD, work.requests().get(r).seqLen() - from);
          for (int t = 0; t < count; t++) {
            into.setAtIndex(ValueLayout.JAVA_LONG, t, slot(r, from + t));
          }
          impl.writeKv(launch, keyValues(count), cache(), slots(into, count));
        }
      }
    }
  }

  private long slot(int request, int token) {
    int block =
        table.getAtIndex(ValueLayout.JAVA_INT, (long) request * columns + token / work.blockSize());
    return (long) block * work.blockSize() + token % work.blockSize();
  }

  private static SlotMapping slots(MemorySegment memory, int count) {
    return new SlotMapping(TensorView.ofHost(memory, bifocal.core.tensor.DType.INT64, count));
  }

  Work work() {
    return work;
  }

  Arena arena() {
    return arena;
  }

  LayerGroup group() {
    return group;
  }

  KvCacheSpec spec() {
    return spec;
  }

  HostLaunchContext launch() {
    return launch;
  }

  KvCacheView cache() {
    KvBlocks held = pool.group(GROUP);
    return held.view(GROUP);
  }

  TensorView q() {
    return q;
  }

  /** Room for an output of the work. */
  TensorView newOutput() {
    return TensorView.ofHost(
        arena.allocate(q.data().byteSize(), 64),
        work.dtype(),
        work.queryTokens(),
        Work.HEADS,
        work.headSize());
  }

  /** The first keys and values. */
  KvInput.Dense keyValues(int tokens) {
    return new KvInput.Dense(
        TensorView.ofHost(keys, work.dtype(), PERIOD, Work.KV_HEADS, work.headSize())
            .rows(0, tokens),
        TensorView.ofHost(values, work.dtype(), PERIOD, Work.KV_HEADS, work.headSize())
            .rows(0, tokens));
  }

  /** Slots of the first tokens of the first request. */
  SlotMapping firstSlots(int tokens) {
    MemorySegment memory = arena.allocate((long) tokens * Long.BYTES, 64);
    for (int t = 0; t < tokens; t++) {
      memory.setAtIndex(ValueLayout.JAVA_LONG, t, slot(0, t));
    }
    return slots(memory, tokens);
  }

  CommonAttentionMetadata batch() {
    int count = work.requests().size();
    int[] queryStartLoc = new int[count + 1];
    int[] seqLens = new int[count];
    int[][] images = new int[count][];
    for (int r = 0; r < count; r++) {
      Request request = work.requests().get(r);
      queryStartLoc[r + 1] = queryStartLoc[r] + request.queryLen();
      seqLens[r] = request.seqLen();
      images[r] = request.images();
    }
    return CommonAttentionMetadata.builder(
            queryStartLoc,
            seqLens,
            TensorView.ofHost(table, bifocal.core.tensor.DType.INT32, count, columns),
            slots(slots, work.queryTokens()))
        .images(ImageRanges.of(images, count))
        .build();
  }

  /** The same keys and values without pages, made when first asked for. */
  Contiguous contiguous() {
    if (contiguous.isEmpty()) {
      contiguous = Option.some(makeContiguous());
    }
    return contiguous.get();
  }

  private Contiguous makeContiguous() {
    long rowBytes = (long) work.headSize() * work.dtype().bytes();
    MemorySegment byHeadK = byHead(keys, rowBytes);
    MemorySegment byHeadV = byHead(values, rowBytes);
    long bytes = (long) work.cachedTokens() * Work.KV_HEADS * rowBytes;
    MemorySegment k = arena.allocate(bytes, 64);
    MemorySegment v = arena.allocate(bytes, 64);
    // As the cache has them.
    HugePages.request(k);
    HugePages.request(v);
    long[] starts = new long[work.requests().size()];
    long at = 0;
    for (int r = 0; r < work.requests().size(); r++) {
      starts[r] = at / rowBytes;
      for (int head = 0; head < Work.KV_HEADS; head++) {
        int length = work.requests().get(r).seqLen();
        for (int from = 0; from < length; from += PERIOD) {
          long size = Math.min(PERIOD, length - from) * rowBytes;
          MemorySegment.copy(byHeadK, head * PERIOD * rowBytes, k, at, size);
          MemorySegment.copy(byHeadV, head * PERIOD * rowBytes, v, at, size);
          at += size;
        }
      }
    }
    return new Contiguous(k, v, starts);
  }

  private MemorySegment byHead(MemorySegment byToken, long rowBytes) {
    MemorySegment result = arena.allocate(byToken.byteSize(), 64);
    for (int t = 0; t < PERIOD; t++) {
      for (int head = 0; head < Work.KV_HEADS; head++) {
        MemorySegment.copy(
            byToken,
            ((long) t * Work.KV_HEADS + head) * rowBytes,
            result,
            ((long) head * PERIOD + t) * rowBytes,
            rowBytes);
      }
    }
    return result;
  }

  @Override
  public void close() {
    pool.close();
    arena.close();
  }
}
