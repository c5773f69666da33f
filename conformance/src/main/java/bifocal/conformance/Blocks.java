package bifocal.conformance;

import bifocal.conformance.ffi.GuardPages;
import bifocal.conformance.memory.TestDevice;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.device.Device;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;

/**
 * The cache of a rig. Every sequence owns its blocks from the start; their order is shuffled. Block
 * 0 is zero, all others are full of finite rubbish until they are written.
 */
final class Blocks implements AutoCloseable {
  private static final float RUBBISH = 300;
  private static final long ALIGNMENT = 64;

  private final TestDevice device;
  private final KvCacheView view;
  private final Arena host;
  private final int[][] bySequence;
  private final MemorySegment rubbish;

  private Blocks(
      TestDevice device, KvCacheView view, Arena host, int[][] bySequence, MemorySegment rubbish) {
    this.device = device;
    this.view = view;
    this.host = host;
    this.bySequence = bySequence;
    this.rubbish = rubbish;
  }

  @SuppressWarnings("MustBeClosedChecker") // close() closes it
  static Blocks allocate(TestDevice device, KvCacheSpec spec, Setup setup) {
    int perSequence = spec.blocksFor(setup.maxSeqLen());
    int numBlocks = setup.firstBlock() + setup.sequences() * perSequence;
    Arena host = Arena.ofConfined();
    KvCacheView view = view(device, spec, setup, numBlocks, host);
    MemorySegment rubbish = rubbish(spec, setup.seed(), host);
    for (int block = setup.firstBlock(); block < numBlocks; block++) {
      device.upload(rubbish, record(view, block));
    }
    return new Blocks(device, view, host, deal(setup, perSequence, numBlocks), rubbish);
  }

  private static KvCacheView view(
      TestDevice device, KvCacheSpec spec, Setup setup, int numBlocks, Arena host) {
    if (setup.blockStride().isEmpty()) {
      return KvCacheView.wrap(
          device.allocate(numBlocks * spec.blockBytes()),
          spec,
          device.device(),
          numBlocks,
          spec.blockBytes());
    }
    long stride = setup.blockStride().get();
    return KvCacheView.wrap(
        GuardPages.reserve(numBlocks * stride, host), spec, Device.HOST, numBlocks, stride);
  }

  private static MemorySegment rubbish(KvCacheSpec spec, long seed, Arena host) {
    MemorySegment block = host.allocate(spec.blockBytes(), ALIGNMENT);
    float[] key = new float[spec.headSize()];
    float[] value = new float[spec.headSizeV()];
    for (int token = 0; token < spec.blockSize(); token++) {
      for (int head = 0; head < spec.numKvHeads(); head++) {
        fill(key, seed + token);
        fill(value, seed - token);
        spec.layout().write(spec, block, token, head, key, value);
      }
    }
    return block;
  }

  private static void fill(float[] numbers, long seed) {
    for (int d = 0; d < numbers.length; d++) {
      numbers[d] = RUBBISH * Counter.unitVariance(Counter.mix(seed ^ ((long) d << 20)));
    }
  }

  private static int[][] deal(Setup setup, int perSequence, int numBlocks) {
    List<Integer> free = new ArrayList<>();
    for (int block = setup.firstBlock(); block < numBlocks; block++) {
      free.add(block);
    }
    if (!setup.orderedBlocks()) {
      Collections.shuffle(free, new Random(setup.seed()));
    }
    int[][] bySequence = new int[setup.sequences()][perSequence];
    for (int i = 0; i < free.size(); i++) {
      bySequence[i / perSequence][i % perSequence] = free.get(i);
    }
    return bySequence;
  }

  private static MemorySegment record(KvCacheView view, int block) {
    return view.memory().asSlice(view.blockOffset(block), view.spec().blockBytes());
  }

  KvCacheView view() {
    return view;
  }

  /** Blocks of a sequence, in order. */
  int[] of(int sequence) {
    return bySequence[sequence];
  }

  /** Slot of a token. */
  long slot(int sequence, int position) {
    int size = view.spec().blockSize();
    return (long) bySequence[sequence][position / size] * size + position % size;
  }

  /** A copy of the whole cache that the host can read. */
  KvCacheView toHost() {
    long blockBytes = view.spec().blockBytes();
    MemorySegment copy = host.allocate(view.numBlocks() * blockBytes, ALIGNMENT);
    for (int block = 0; block < view.numBlocks(); block++) {
      device.download(record(view, block), copy.asSlice(block * blockBytes, blockBytes));
    }
    return KvCacheView.wrap(copy, view.spec(), Device.HOST, view.numBlocks(), blockBytes);
  }

  /** A block as it was before anything was written. */
  MemorySegment untouched() {
    return rubbish.asReadOnly();
  }

  /** One block in host memory. */
  MemorySegment scratch() {
    return host.allocate(view.spec().blockBytes(), ALIGNMENT);
  }

  @Override
  public void close() {
    host.close();
  }
}
