package bifocal.cpu.cache;

import bifocal.core.tensor.NarrowFloats;
import bifocal.cpu.raw.RawMemory;

/** Single elements of any kernel type, by address. */
public final class Numbers {
  private static final float INT8_MAX = 127f;

  private Numbers() {}

  /** Reads an element, without its scale. */
  public static float read(KernelType type, long address) {
    return switch (type) {
      case FLOAT32 -> RawMemory.readFloat(address);
      case FLOAT16 -> NarrowFloats.fromFp16(RawMemory.readShort(address));
      case BFLOAT16 -> NarrowFloats.fromBf16(RawMemory.readShort(address));
      case FLOAT8_E4M3, FLOAT8_PER_TOKEN_HEAD -> NarrowFloats.fromE4m3(RawMemory.readByte(address));
      case FLOAT8_E5M2 -> NarrowFloats.fromE5m2(RawMemory.readByte(address));
      case INT8_PER_TOKEN_HEAD -> RawMemory.readByte(address);
    };
  }

  /** Writes an element, the scale already divided out. */
  public static void write(KernelType type, long address, float value) {
    switch (type) {
      case FLOAT32 -> RawMemory.writeFloat(address, value);
      case FLOAT16 -> RawMemory.writeShort(address, NarrowFloats.toFp16(value));
      case BFLOAT16 -> RawMemory.writeShort(address, NarrowFloats.toBf16(value));
      case FLOAT8_E4M3, FLOAT8_PER_TOKEN_HEAD ->
          RawMemory.writeByte(address, NarrowFloats.toE4m3(value));
      case FLOAT8_E5M2 -> RawMemory.writeByte(address, NarrowFloats.toE5m2(value));
      case INT8_PER_TOKEN_HEAD -> RawMemory.writeByte(address, NarrowFloats.toInt8(value));
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
