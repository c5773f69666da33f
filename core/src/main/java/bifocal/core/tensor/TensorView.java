package bifocal.core.tensor;

import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * A shape over memory that somebody else owns: data, shape, strides in elements, element type and
 * device, as DLPack describes tensors. The view never frees its memory and, for a device that the
 * host cannot read, never touches it.
 *
 * <p>The constructor proves that every element lies inside the segment, so a kernel that keeps to
 * shape and strides stays inside the memory.
 */
public final class TensorView {
  private final MemorySegment data;
  private final long[] shape;
  private final long[] strides;
  private final DType dtype;
  private final Device device;

  private TensorView(MemorySegment data, long[] shape, long[] strides, DType dtype, Device device) {
    this.data = data;
    this.shape = shape;
    this.strides = strides;
    this.dtype = dtype;
    this.device = device;
  }

  /** A row-major view of host memory. */
  public static TensorView ofHost(MemorySegment data, DType dtype, long... shape) {
    return of(data, dtype, Device.HOST, shape, contiguousStrides(shape));
  }

  /** A row-major view of memory on a device. */
  public static TensorView of(MemorySegment data, DType dtype, Device device, long... shape) {
    return of(data, dtype, device, shape, contiguousStrides(shape));
  }

  /**
   * A strided view.
   *
   * @param strides distance between neighbours of each dimension, in elements, not negative
   * @throws BifocalException {@code NEGATIVE}, {@code SHAPE_MISMATCH}, {@code OVERFLOW} or {@code
   *     MEMORY_TOO_SMALL}
   */
  public static TensorView of(
      MemorySegment data, DType dtype, Device device, long[] shape, long[] strides) {
    if (shape.length != strides.length) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "strides of a tensor", strides.length, shape.length);
    }
    long needed = neededBytes(shape, strides, dtype);
    if (data.byteSize() < needed) {
      throw BifocalException.of(
          ErrorCode.MEMORY_TOO_SMALL,
          "memory of a " + dtype + " tensor of shape " + Arrays.toString(shape),
          data.byteSize() + " bytes",
          needed + " bytes");
    }
    return new TensorView(data, shape.clone(), strides.clone(), dtype, device);
  }

  /** The memory, starting at element zero. */
  public MemorySegment data() {
    return data;
  }

  /** Address of element zero, on the device. */
  public long address() {
    return data.address();
  }

  public DType dtype() {
    return dtype;
  }

  public Device device() {
    return device;
  }

  /** Number of dimensions. */
  public int rank() {
    return shape.length;
  }

  /** Size of a dimension. */
  public long size(int dimension) {
    return shape[dimension];
  }

  /** Stride of a dimension, in elements. */
  public long stride(int dimension) {
    return strides[dimension];
  }

  /** A copy of the shape. */
  public long[] shape() {
    return shape.clone();
  }

  /** Number of elements. */
  public long elements() {
    long product = 1;
    for (long size : shape) {
      product *= size;
    }
    return product;
  }

  /** Whether elements lie in row-major order without gaps. */
  public boolean contiguous() {
    return Arrays.equals(strides, contiguousStrides(shape));
  }

  /** Rows {@code from} until {@code to} of the first dimension, over the same memory. */
  public TensorView rows(long from, long to) {
    if (shape.length == 0) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "rows of a tensor", this, "at least one dimension");
    }
    if (from < 0 || to < from || to > shape[0]) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "rows of a tensor", from + ".." + to, "within 0.." + shape[0]);
    }
    long[] part = shape.clone();
    part[0] = to - from;
    // No rows, or rows of nothing, may begin behind the memory.
    long start = neededBytes(part, strides, dtype) == 0 ? 0 : from * strides[0] * dtype.bytes();
    return new TensorView(data.asSlice(start), part, strides, dtype, device);
  }

  /**
   * Requires a type, device and shape; a wanted size of -1 matches any size.
   *
   * @param name how the message calls the tensor
   * @return this view
   * @throws BifocalException {@code DTYPE_MISMATCH}, {@code DEVICE_MISMATCH} or {@code
   *     SHAPE_MISMATCH}
   */
  public TensorView require(String name, DType wantedType, Device wantedDevice, long... wanted) {
    if (dtype != wantedType) {
      throw BifocalException.of(ErrorCode.DTYPE_MISMATCH, name, dtype, wantedType);
    }
    if (!device.equals(wantedDevice)) {
      throw BifocalException.of(ErrorCode.DEVICE_MISMATCH, name, device, wantedDevice);
    }
    boolean fits = shape.length == wanted.length;
    for (int i = 0; fits && i < wanted.length; i++) {
      fits = wanted[i] == -1 || wanted[i] == shape[i];
    }
    if (!fits) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, name, Arrays.toString(shape), Arrays.toString(wanted));
    }
    return this;
  }

  private static long[] contiguousStrides(long[] shape) {
    long[] strides = new long[shape.length];
    long stride = 1;
    for (int i = shape.length - 1; i >= 0; i--) {
      strides[i] = stride;
      long size = Math.max(shape[i], 1);
      if (stride > Long.MAX_VALUE / size) {
        throw BifocalException.of(
            ErrorCode.OVERFLOW, "size of a tensor of shape " + Arrays.toString(shape));
      }
      stride *= size;
    }
    return strides;
  }

  private static long neededBytes(long[] shape, long[] strides, DType dtype) {
    long last = 0;
    long elements = 1;
    boolean empty = false;
    try {
      for (int i = 0; i < shape.length; i++) {
        if (shape[i] < 0 || strides[i] < 0) {
          throw BifocalException.of(
              ErrorCode.NEGATIVE,
              "dimension " + i + " of a tensor",
              "size " + shape[i] + ", stride " + strides[i],
              "not negative");
        }
        empty |= shape[i] == 0;
        elements = Math.multiplyExact(elements, Math.max(shape[i], 1));
        last = Math.addExact(last, Math.multiplyExact(Math.max(shape[i] - 1, 0), strides[i]));
      }
      return empty ? 0 : Math.multiplyExact(Math.addExact(last, 1), (long) dtype.bytes());
    } catch (ArithmeticException e) {
      throw BifocalException.of(
              ErrorCode.OVERFLOW, "size of a tensor of shape " + Arrays.toString(shape))
          .causedBy(e);
    }
  }

  @Override
  public String toString() {
    return dtype + Arrays.toString(shape) + "@" + device;
  }
}
