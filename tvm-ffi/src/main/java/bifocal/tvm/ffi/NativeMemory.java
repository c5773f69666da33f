package bifocal.tvm.ffi;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Small blocks that native code reads, and whose owners say so in Java. */
public final class NativeMemory {
  /** The scope of what never goes away. */
  public static final MemorySegment.Scope ALWAYS = MemorySegment.NULL.scope();

  private static final long FREE = SystemLibrary.freeAddress();

  private NativeMemory() {}

  /** Zeroed memory that lives as long as anybody holds the segment. */
  public static MemorySegment held(long bytes) {
    return Arena.ofAuto().allocate(bytes, Long.BYTES);
  }

  /** A C string, held like {@link #held}. */
  public static MemorySegment text(String value) {
    return Arena.ofAuto().allocateFrom(value);
  }

  /** A {@code TVMFFIByteArray} with its content behind it, held like {@link #held}. */
  public static MemorySegment byteArray(byte[] content) {
    MemorySegment array = held(2L * Long.BYTES + content.length);
    array.set(ValueLayout.JAVA_LONG, 0, array.address() + 2 * Long.BYTES);
    array.set(ValueLayout.JAVA_LONG, Long.BYTES, content.length);
    MemorySegment.copy(content, 0, array, ValueLayout.JAVA_BYTE, 2 * Long.BYTES, content.length);
    return array;
  }

  /**
   * Zeroed memory that the native code it is given to releases, by calling {@link #releaser} with
   * its address.
   */
  public static MemorySegment handedOver(long bytes) {
    return SystemLibrary.allocate(bytes);
  }

  /** Address of the function {@code void (*)(void *)} that releases a block handed over. */
  public static long releaser() {
    return FREE;
  }

  /** Releases a block that nobody took over. */
  public static void takeBack(MemorySegment block) {
    SystemLibrary.free(block);
  }
}
