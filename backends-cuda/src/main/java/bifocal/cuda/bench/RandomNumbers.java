package bifocal.cuda.bench;

import bifocal.core.tensor.DType;
import bifocal.core.tensor.NarrowFloats;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.memory.PinnedBlock;
import java.lang.foreign.MemorySegment;
import java.util.SplittableRandom;

/** Normal numbers in pinned memory, copied to the device as often as it takes. */
final class RandomNumbers implements AutoCloseable {
  private static final int COUNT = (1 << 22) + 17 * 16;

  private final PinnedBlock wide;
  private final PinnedBlock narrow;

  RandomNumbers(CudaContext context) {
    this.wide = PinnedBlock.allocate(context, "random bf16", 2L * COUNT);
    this.narrow = PinnedBlock.allocate(context, "random fp8", COUNT);
    SplittableRandom random = new SplittableRandom(11);
    for (int i = 0; i < COUNT; i++) {
      float number = (float) random.nextGaussian();
      NarrowFloats.store(wide.segment(), 2L * i, DType.BF16, number);
      NarrowFloats.store(narrow.segment(), i, DType.FP8_E4M3, number);
    }
  }

  /** Fills memory; the stretch of numbers is no multiple of a block, so blocks differ. */
  void fill(CudaStream stream, MemorySegment device, DType type) {
    MemorySegment from = type == DType.BF16 ? wide.segment() : narrow.segment();
    long step = (long) COUNT * type.bytes();
    for (long at = 0; at < device.byteSize(); at += step) {
      stream.copyToDevice(from, 0, device, at, Math.min(step, device.byteSize() - at));
    }
    stream.synchronize();
  }

  @Override
  public void close() {
    wide.close();
    narrow.close();
  }
}
