package bifocal.tvm.ffi;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;

/**
 * Reads the objects of {@code libtvm_ffi}. Each object starts with a header of 24 bytes: its
 * counts, its type, its deleter; what it holds follows. Whoever reads an object holds a reference
 * to it.
 */
@SuppressWarnings("restricted")
public final class ObjectCells {
  /** Size of a {@code TVMFFIAny}. */
  public static final int ANY_BYTES = 16;

  /** Size of a {@code DLTensor}. */
  public static final int DL_TENSOR_BYTES = 48;

  private static final long HEADER_BYTES = 24;
  private static final long BYTE_ARRAY_BYTES = 16;
  private static final int LONGEST_C_STRING = 1 << 20;

  private ObjectCells() {}

  /**
   * The fields of a {@code DLTensor}.
   *
   * @param strides in elements; row-major where the tensor has none
   */
  public record DlFields(
      long data,
      int deviceType,
      int deviceId,
      int code,
      int bits,
      int lanes,
      long[] shape,
      long[] strides) {}

  /** How many strong references an object has. */
  public static int strongCount(long object) {
    return at(object, HEADER_BYTES).get(JAVA_INT, 0);
  }

  /** The {@code TVMFFIByteArray} that a string or bytes object holds. */
  public static byte[] content(long object) {
    return bytes(at(object + HEADER_BYTES, BYTE_ARRAY_BYTES), 0);
  }

  /** What a {@code TVMFFIByteArray} points to. */
  public static byte[] byteArray(long address) {
    return bytes(at(address, BYTE_ARRAY_BYTES), 0);
  }

  /** A C string. */
  public static String text(long address) {
    return at(address, LONGEST_C_STRING).getString(0);
  }

  /** Kind, message and backtrace of an error object. */
  public static RuntimeLibrary.Raised error(long object) {
    MemorySegment cell = at(object + HEADER_BYTES, 3 * BYTE_ARRAY_BYTES);
    return new RuntimeLibrary.Raised(
        string(cell, 0), string(cell, BYTE_ARRAY_BYTES), string(cell, 2 * BYTE_ARRAY_BYTES));
  }

  /** The sizes of a shape object. */
  public static long[] sizes(long object) {
    MemorySegment cell = at(object + HEADER_BYTES, 2 * Long.BYTES);
    return longs(cell.get(JAVA_LONG, 0), cell.get(JAVA_LONG, Long.BYTES));
  }

  /** The {@code TVMFFIAny} of an array or list object, one behind the other. */
  public static MemorySegment elements(long object) {
    MemorySegment cell = at(object + HEADER_BYTES, 2 * Long.BYTES);
    return at(cell.get(JAVA_LONG, 0), cell.get(JAVA_LONG, Long.BYTES) * ANY_BYTES);
  }

  /** What a function object calls. */
  public static MemorySegment safeCall(long object) {
    return MemorySegment.ofAddress(at(object + HEADER_BYTES, Long.BYTES).get(JAVA_LONG, 0));
  }

  /** The {@code DLTensor} of a tensor object. */
  public static long dlTensor(long object) {
    return object + HEADER_BYTES;
  }

  /** Reads a {@code DLTensor}. */
  public static DlFields dlFields(long address) {
    MemorySegment tensor = at(address, DL_TENSOR_BYTES);
    long rank = tensor.get(JAVA_INT, 16);
    long[] shape = longs(tensor.get(JAVA_LONG, 24), rank);
    long strides = tensor.get(JAVA_LONG, 32);
    return new DlFields(
        tensor.get(JAVA_LONG, 0) + tensor.get(JAVA_LONG, 40),
        tensor.get(JAVA_INT, 8),
        tensor.get(JAVA_INT, 12),
        Byte.toUnsignedInt(tensor.get(JAVA_BYTE, 20)),
        Byte.toUnsignedInt(tensor.get(JAVA_BYTE, 21)),
        Short.toUnsignedInt(tensor.get(JAVA_SHORT, 22)),
        shape,
        strides == 0 ? rowMajor(shape) : longs(strides, rank));
  }

  /** Memory that native code pointed to, of a size that it told. */
  public static MemorySegment at(long address, long bytes) {
    return MemorySegment.ofAddress(address).reinterpret(bytes);
  }

  private static long[] rowMajor(long[] shape) {
    long[] strides = new long[shape.length];
    long stride = 1;
    for (int i = shape.length - 1; i >= 0; i--) {
      strides[i] = stride;
      stride *= Math.max(shape[i], 1);
    }
    return strides;
  }

  private static long[] longs(long address, long count) {
    return count == 0 ? new long[0] : at(address, count * Long.BYTES).toArray(JAVA_LONG);
  }

  private static String string(MemorySegment cell, long offset) {
    return new String(bytes(cell, offset), StandardCharsets.UTF_8);
  }

  private static byte[] bytes(MemorySegment cell, long offset) {
    long size = cell.get(JAVA_LONG, offset + Long.BYTES);
    return size == 0 ? new byte[0] : at(cell.get(JAVA_LONG, offset), size).toArray(JAVA_BYTE);
  }
}
