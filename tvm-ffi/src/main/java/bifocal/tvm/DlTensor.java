package bifocal.tvm;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.TensorView;
import bifocal.tvm.ffi.NativeMemory;
import bifocal.tvm.ffi.ObjectCells;
import java.lang.foreign.MemorySegment;

/**
 * A tensor that is lent to calls: a {@code DLTensor}, which no one counts references to. It can be
 * made to describe another tensor for each call, without allocating. One thread uses it at a time.
 *
 * <p>Strides are always there, and offsets are part of the address: functions read both without
 * asking.
 */
public final class DlTensor {
  private static final int RANK = 16;
  private static final int CODE = 20;
  private static final int SHAPE = 24;
  private static final int STRIDES = 32;

  private final int mostDimensions;
  private final MemorySegment memory;
  private TensorView described;

  private DlTensor(int mostDimensions, MemorySegment memory, TensorView described) {
    this.mostDimensions = mostDimensions;
    this.memory = memory;
    this.described = described;
  }

  /** A description of a tensor, and later of others of at most as many dimensions. */
  public static DlTensor of(TensorView view) {
    int dimensions = Math.max(view.rank(), 1);
    MemorySegment memory =
        NativeMemory.held(ObjectCells.DL_TENSOR_BYTES + 2L * Long.BYTES * dimensions);
    DlTensor tensor = new DlTensor(dimensions, memory, view);
    tensor.describe(view);
    return tensor;
  }

  /**
   * Describes another tensor.
   *
   * @throws BifocalException {@code SHAPE_MISMATCH} if it has more dimensions than the first,
   *     {@code UNSUPPORTED} if it lies in the Java heap
   */
  public void describe(TensorView view) {
    requireNative(view);
    if (view.rank() > mostDimensions) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          "dimensions of a described tensor",
          view.rank(),
          "at most " + mostDimensions);
    }
    write(memory, 0, ObjectCells.DL_TENSOR_BYTES, view);
    described = view;
  }

  /**
   * Describes some rows of a tensor, along its first dimension.
   *
   * @throws BifocalException as {@link #describe}, and {@code SHAPE_MISMATCH} for rows that it does
   *     not have
   */
  public void describeRows(TensorView view, long first, long count) {
    if (view.rank() == 0 || first < 0 || count < 0 || first > view.size(0) - count) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "rows of a described tensor", first + " and " + count, view);
    }
    describe(view);
    memory.set(Slots.LONG, 0, view.address() + first * view.stride(0) * view.dtype().bytes());
    memory.set(Slots.LONG, ObjectCells.DL_TENSOR_BYTES, count);
  }

  /** The tensor it describes now, or describes rows of. */
  public TensorView described() {
    return described;
  }

  long address() {
    return memory.address();
  }

  /** The garbage collector may move what lies in the Java heap. */
  static void requireNative(TensorView view) {
    if (!view.data().isNative()) {
      throw BifocalException.of(
          ErrorCode.UNSUPPORTED, "memory of a tensor", "in the Java heap", "outside of it");
    }
  }

  /**
   * Writes a {@code DLTensor}.
   *
   * @param at offset of the structure
   * @param sizes offset of room for shape and strides
   */
  static void write(MemorySegment memory, long at, long sizes, TensorView view) {
    int rank = view.rank();
    long strides = sizes + (long) rank * Long.BYTES;
    memory.set(Slots.LONG, at, view.address());
    memory.set(Slots.INT, at + 8, deviceType(view));
    memory.set(Slots.INT, at + 12, view.device().ordinal());
    memory.set(Slots.INT, at + RANK, rank);
    memory.set(Slots.BYTE, at + CODE, (byte) DlType.code(view.dtype()));
    memory.set(Slots.BYTE, at + CODE + 1, (byte) (view.dtype().bytes() * Byte.SIZE));
    memory.set(Slots.SHORT, at + CODE + 2, (short) 1);
    memory.set(Slots.LONG, at + SHAPE, memory.address() + sizes);
    memory.set(Slots.LONG, at + STRIDES, memory.address() + strides);
    memory.set(Slots.LONG, at + 40, 0);
    for (int i = 0; i < rank; i++) {
      memory.set(Slots.LONG, sizes + (long) i * Long.BYTES, view.size(i));
      memory.set(Slots.LONG, strides + (long) i * Long.BYTES, view.stride(i));
    }
  }

  private static int deviceType(TensorView view) {
    return DlDevice.type(view.device().platform());
  }

  /** What a {@code DLTensor} of native code describes. */
  static TensorView read(long address) {
    ObjectCells.DlFields fields = ObjectCells.dlFields(address);
    var dtype = new DlType(fields.code(), fields.bits(), fields.lanes()).dtype();
    long bytes = dtype.bytes();
    for (int i = 0; i < fields.shape().length; i++) {
      bytes =
          fields.shape()[i] == 0
              ? 0
              : bytes + (fields.shape()[i] - 1) * fields.strides()[i] * dtype.bytes();
      if (bytes == 0) {
        break;
      }
    }
    return TensorView.of(
        ObjectCells.at(fields.data(), bytes),
        dtype,
        new DlDevice(fields.deviceType(), fields.deviceId()).device(),
        fields.shape(),
        fields.strides());
  }
}
