package bifocal.benchmarks.cpu;

import bifocal.core.tensor.DType;
import bifocal.core.tensor.NarrowFloats;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.SplittableRandom;

/** Numbers to compute with: normally distributed, the same in every run. */
final class Numbers {
  private Numbers() {}

  static MemorySegment random(Arena arena, DType type, long count, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    MemorySegment memory = arena.allocate(count * type.bytes(), 64);
    for (long i = 0; i < count; i++) {
      NarrowFloats.store(memory, i * type.bytes(), type, (float) random.nextGaussian());
    }
    return memory;
  }

  static float read(MemorySegment memory, long index, DType type) {
    return NarrowFloats.load(memory, index * type.bytes(), type);
  }
}
