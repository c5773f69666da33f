package bifocal.cpu.raw;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Native memory by address, for the inner loops of kernels, where a segment per tensor would cost a
 * bounds check per element.
 *
 * <p>Addresses come from {@link #address} alone, which checks once that a whole range lies inside a
 * live native segment. Whoever computes further addresses stays inside such ranges.
 */
public final class RawMemory {
  /** All of the address space; only kernels index it. */
  @SuppressWarnings("restricted")
  public static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

  private static final ValueLayout.OfByte BYTE = ValueLayout.JAVA_BYTE;
  private static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;
  private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
  private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
  private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

  private RawMemory() {}

  /**
   * The address of a range of a segment.
   *
   * @param what how the message calls the memory
   * @throws BifocalException {@code CLOSED}, {@code DEVICE_MISMATCH} for memory of the Java heap,
   *     or {@code MEMORY_TOO_SMALL}
   */
  public static long address(String what, MemorySegment segment, long offset, long bytes) {
    if (!segment.isNative()) {
      throw BifocalException.of(
              ErrorCode.DEVICE_MISMATCH, what, "memory of the Java heap", "native memory")
          .withRemedy("allocate it from an Arena");
    }
    if (!segment.scope().isAlive()) {
      throw BifocalException.of(ErrorCode.CLOSED, what + ": the memory was released");
    }
    if (offset < 0 || bytes < 0 || offset > segment.byteSize() - bytes) {
      throw BifocalException.of(
          ErrorCode.MEMORY_TOO_SMALL,
          what,
          segment.byteSize() + " bytes",
          bytes + " bytes from byte " + offset);
    }
    return segment.address() + offset;
  }

  public static byte readByte(long address) {
    return ALL.get(BYTE, address);
  }

  public static short readShort(long address) {
    return ALL.get(SHORT, address);
  }

  public static int readInt(long address) {
    return ALL.get(INT, address);
  }

  public static long readLong(long address) {
    return ALL.get(LONG, address);
  }

  public static float readFloat(long address) {
    return ALL.get(FLOAT, address);
  }

  public static void writeByte(long address, byte value) {
    ALL.set(BYTE, address, value);
  }

  public static void writeShort(long address, short value) {
    ALL.set(SHORT, address, value);
  }

  public static void writeInt(long address, int value) {
    ALL.set(INT, address, value);
  }

  public static void writeLong(long address, long value) {
    ALL.set(LONG, address, value);
  }

  public static void writeFloat(long address, float value) {
    ALL.set(FLOAT, address, value);
  }

  /** Fills a range with a float. */
  public static void fillFloats(long address, long count, float value) {
    for (long i = 0; i < count; i++) {
      ALL.set(FLOAT, address + 4 * i, value);
    }
  }

  /** Zeroes a range. */
  public static void zero(long address, long bytes) {
    long at = 0;
    for (; at + 8 <= bytes; at += 8) {
      ALL.set(LONG, address + at, 0L);
    }
    for (; at < bytes; at++) {
      ALL.set(BYTE, address + at, (byte) 0);
    }
  }
}
