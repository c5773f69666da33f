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

  private final TestDevice device;
  private final KvCacheView view;
  private final Arena reserved;
  private final int[][] bySequence;
  private final byte[] rubbish;

  private Blocks(
      TestDevice device, KvCacheView view, Arena reserved, int[][] bySequence, byte[] rubbish) {
    this.device = device;
    this.view = view;
    this.reserved = reserved;
    this.bySequence = bySequence;
    this.rubbish = rubbish;
  }

  @SuppressWarnings("MustBeClosedChecker") // close() closes it
  static Blocks allocate(TestDevice device, KvCacheSpec spec, Setup setup) {
    int perSequence = spec.blocksFor(setup.maxSeqLen());
    int numBlocks = 1 + setup.sequences() * perSequence;
    Arena reserved = Arena.ofConfined();
    KvCacheView view = view(device, spec, setup, numBlocks, reserved);
    byte[] rubbish = rubbish(spec, setup.seed());
    for (int block = 1; block < numBlocks; block++) {
      device.upload(MemorySegment.ofArray(rubbish), record(view, block));
    }
    return new Blocks(device, view, reserved, deal(setup, perSequence, numBlocks), rubbish);
  }

  private static KvCacheView view(
      TestDevice device, KvCacheSpec spec, Setup setup, int numBlocks, Arena reserved) {
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
        GuardPages.reserve(numBlocks * stride, reserved), spec, Device.HOST, numBlocks, stride);
  }

  private static byte[] rubbish(KvCacheSpec spec, long seed) {
    byte[] bytes = new byte[Math.toIntExact(spec.blockBytes())];
    MemorySegment block = MemorySegment.ofArray(bytes);
    float[] key = new float[spec.headSize()];
    float[] value = new float[spec.headSizeV()];
    for (int token = 0; token < spec.blockSize(); token++) {
      for (int head = 0; head < spec.numKvHeads(); head++) {
        fill(key, seed + token);
        fill(value, seed - token);
        spec.layout().write(spec, block, token, head, key, value);
      }
    }
    return bytes;
  }

  private static void fill(float[] numbers, long seed) {
    for (int d = 0; d < numbers.length; d++) {
      numbers[d] = RUBBISH * Counter.unitVariance(Counter.mix(seed ^ ((long) d << 20)));
    }
  }

  private static int[][] deal(Setup setup, int perSequence, int numBlocks) {
    List<Integer> free = new ArrayList<>();
    for (int block = 1; block < numBlocks; block++) {
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
    byte[] bytes = new byte[Math.toIntExact(view.numBlocks() * blockBytes)];
    MemorySegment host = MemorySegment.ofArray(bytes);
    for (int block = 0; block < view.numBlocks(); block++) {
      device.download(record(view, block), host.asSlice(block * blockBytes, blockBytes));
    }
    return KvCacheView.wrap(host, view.spec(), Device.HOST, view.numBlocks(), blockBytes);
  }

  /** A block as it was before anything was written. */
  MemorySegment untouched() {
    return MemorySegment.ofArray(rubbish.clone());
  }

  @Override
  public void close() {
    reserved.close();
  }
}
