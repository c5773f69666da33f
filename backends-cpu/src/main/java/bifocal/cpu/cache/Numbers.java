package bifocal.cpu.cache;

import bifocal.core.tensor.NarrowFloats;
import bifocal.cpu.raw.RawMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Single elements of any kernel type, by address or in a segment. */
public final class Numbers {
  private static final float INT8_MAX = 127f;

  private Numbers() {}

  /** Reads an element, without its scale. */
  public static float read(KernelType type, long address) {
    return read(type, RawMemory.ALL, address);
  }

  /** Reads an element of a segment, without its scale. */
  static float read(KernelType type, MemorySegment memory, long at) {
    return switch (type) {
      case FLOAT32 -> memory.get(ValueLayout.JAVA_FLOAT_UNALIGNED, at);
      case FLOAT16 -> NarrowFloats.fromFp16(memory.get(ValueLayout.JAVA_SHORT_UNALIGNED, at));
      case BFLOAT16 -> NarrowFloats.fromBf16(memory.get(ValueLayout.JAVA_SHORT_UNALIGNED, at));
      case FLOAT8_E4M3, FLOAT8_PER_TOKEN_HEAD ->
          NarrowFloats.fromE4m3(memory.get(ValueLayout.JAVA_BYTE, at));
      case FLOAT8_E5M2 -> NarrowFloats.fromE5m2(memory.get(ValueLayout.JAVA_BYTE, at));
      case INT8_PER_TOKEN_HEAD -> memory.get(ValueLayout.JAVA_BYTE, at);
    };
  }

  /** Writes an element, the scale already divided out. */
  public static void write(KernelType type, long address, float value) {
    write(type, RawMemory.ALL, address, value);
  }

  /** Writes an element of a segment, the scale already divided out. */
  static void write(KernelType type, MemorySegment memory, long at, float value) {
    switch (type) {
      case FLOAT32 -> memory.set(ValueLayout.JAVA_FLOAT_UNALIGNED, at, value);
      case FLOAT16 -> memory.set(ValueLayout.JAVA_SHORT_UNALIGNED, at, NarrowFloats.toFp16(value));
      case BFLOAT16 -> memory.set(ValueLayout.JAVA_SHORT_UNALIGNED, at, NarrowFloats.toBf16(value));
      case FLOAT8_E4M3, FLOAT8_PER_TOKEN_HEAD ->
          memory.set(ValueLayout.JAVA_BYTE, at, NarrowFloats.toE4m3(value));
      case FLOAT8_E5M2 -> memory.set(ValueLayout.JAVA_BYTE, at, NarrowFloats.toE5m2(value));
      case INT8_PER_TOKEN_HEAD -> memory.set(ValueLayout.JAVA_BYTE, at, NarrowFloats.toInt8(value));
    }
  }

  /** The scale of one token and head: what turns the largest stored number into the largest one. */
  public static float perTokenHeadScale(KernelType type, float[] numbers, int count) {
    float largest = 0;
    for (int i = 0; i < count; i++) {
      largest = Math.max(largest, Math.abs(numbers[i]));
    }
    return largest / perTokenHeadMax(type);
  }

  /** Largest magnitude that a per-token-head type stores. */
  public static float perTokenHeadMax(KernelType type) {
    return type == KernelType.INT8_PER_TOKEN_HEAD ? INT8_MAX : NarrowFloats.E4M3_MAX;
  }
}
