package bifocal.tvm;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.tvm.ffi.NativeMemory;
import bifocal.tvm.ffi.ObjectCells;
import bifocal.tvm.ffi.RuntimeLibrary;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Reads and writes {@code TVMFFIAny}: a type, 4 bytes more, and 8 bytes of value. */
final class Slots {
  static final ValueLayout.OfByte BYTE = ValueLayout.JAVA_BYTE;
  static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT;
  static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
  static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
  static final ValueLayout.OfDouble DOUBLE = ValueLayout.JAVA_DOUBLE;

  static final int BYTES = ObjectCells.ANY_BYTES;
  static final int VALUE = 8;
  private static final int SMALL_LENGTH = 4;

  private Slots() {}

  /** A slot of its own. */
  static MemorySegment of(int type, long value) {
    MemorySegment slot = NativeMemory.held(BYTES);
    write(slot, 0, type, value);
    return slot;
  }

  static void write(MemorySegment slots, long offset, int type, long value) {
    slots.set(INT, offset, type);
    slots.set(INT, offset + SMALL_LENGTH, 0);
    slots.set(LONG, offset + VALUE, value);
  }

  /** The values of slots that lie one behind the other. */
  static Seq<Any> readAll(TvmRuntime runtime, MemorySegment slots) {
    return Vector.range(0L, slots.byteSize() / BYTES)
        .map(index -> read(runtime, slots.asSlice(index * BYTES, BYTES)));
  }

  /** The value of a slot, which keeps what it holds: references in the value are further ones. */
  static Any read(TvmRuntime runtime, MemorySegment slot) {
    int type = slot.get(INT, 0);
    long value = slot.get(LONG, VALUE);
    return switch (type) {
      case TypeIndex.NONE -> new Any.None();
      case TypeIndex.INT -> new Any.Int(value);
      case TypeIndex.BOOL -> new Any.Bool(value != 0);
      case TypeIndex.FLOAT -> new Any.Real(slot.get(DOUBLE, VALUE));
      case TypeIndex.OPAQUE -> new Any.Opaque(value);
      case TypeIndex.DATA_TYPE -> new Any.ElementType(dlType(value));
      case TypeIndex.DEVICE -> new Any.OnDevice(new DlDevice((int) value, (int) (value >>> 32)));
      case TypeIndex.DL_TENSOR -> new Any.Lent(DlTensor.read(value));
      case TypeIndex.RAW_TEXT -> new Any.Text(ObjectCells.text(value));
      case TypeIndex.BYTE_ARRAY -> bytes(ObjectCells.byteArray(value));
      case TypeIndex.SMALL_TEXT -> text(small(slot));
      case TypeIndex.SMALL_BYTES -> bytes(small(slot));
      default -> readObject(runtime, type, value);
    };
  }

  private static Any readObject(TvmRuntime runtime, int type, long object) {
    if (type < TypeIndex.FIRST_OBJECT) {
      throw BifocalException.of(
          ErrorCode.UNSUPPORTED, "type of a TVM-FFI value", type, "a type that Java can hold");
    }
    return switch (type) {
      case TypeIndex.TEXT -> text(ObjectCells.content(object));
      case TypeIndex.BYTES -> bytes(ObjectCells.content(object));
      case TypeIndex.ERROR -> failure(ObjectCells.error(object));
      case TypeIndex.SHAPE -> Any.Shape.of(ObjectCells.sizes(object));
      case TypeIndex.ARRAY, TypeIndex.LIST ->
          new Any.Array(readAll(runtime, ObjectCells.elements(object)));
      default -> {
        runtime.library().retain(object);
        yield reference(runtime, type, object);
      }
    };
  }

  /** Takes a reference over. */
  static ObjectReference reference(TvmRuntime runtime, int type, long object) {
    return switch (type) {
      case TypeIndex.TENSOR -> TensorObject.owned(runtime.library(), object);
      case TypeIndex.FUNCTION -> new FunctionObject(runtime, "function object", object);
      default -> new OpaqueObject(runtime, type, object);
    };
  }

  private static Any failure(RuntimeLibrary.Raised raised) {
    return new Any.Failure(raised.kind(), raised.message(), raised.backtrace());
  }

  private static Any text(byte[] utf8) {
    return new Any.Text(new String(utf8, StandardCharsets.UTF_8));
  }

  private static Any bytes(byte[] content) {
    return new Any.Bytes(Vector.ofAll(content));
  }

  static byte[] array(Seq<Byte> bytes) {
    byte[] array = new byte[bytes.length()];
    bytes.zipWithIndex().forEach(entry -> array[entry._2] = entry._1);
    return array;
  }

  private static byte[] small(MemorySegment slot) {
    byte[] value = slot.asSlice(VALUE, Long.BYTES).toArray(BYTE);
    return Arrays.copyOf(value, slot.get(INT, SMALL_LENGTH));
  }

  /** Code, bits and lanes, one behind the other. */
  private static DlType dlType(long value) {
    return new DlType(
        (int) (value & 0xFF), (int) (value >>> 8 & 0xFF), (int) (value >>> 16 & 0xFFFF));
  }

  static long word(DlType type) {
    return type.code() | (long) type.bits() << 8 | (long) type.lanes() << 16;
  }

  static long word(DlDevice device) {
    return Integer.toUnsignedLong(device.type()) | (long) device.id() << 32;
  }
}
