package bifocal.cuda.driver;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A kernel's launch with its parameter block laid out once. Values are set by the parameter's
 * index, and stay until they are set again; the driver copies them at each launch. Neither setting
 * nor launching allocates.
 *
 * <p>Not thread-safe: it belongs to the thread that owns the device.
 */
public final class PreparedLaunch {
  private static final int GRID_X = 0;
  private static final int GRID_Y = 4;
  private static final int GRID_Z = 8;
  private static final int BLOCK_X = 12;
  private static final int BLOCK_Y = 16;
  private static final int BLOCK_Z = 20;
  private static final int SHARED = 24;
  private static final int STREAM = 32;
  private static final int ATTRIBUTES = 40;
  private static final int ATTRIBUTE_COUNT = 48;
  private static final int CONFIG_BYTES = 56;

  private static final int ATTRIBUTE_BYTES = 72;
  private static final int MOST_ATTRIBUTES = 4;
  private static final int COOPERATIVE = 2;
  private static final int CLUSTER = 4;
  private static final int CLUSTER_SCHEDULING = 5;
  private static final int SPREAD = 1;
  private static final int PROGRAMMATIC_SERIALIZATION = 6;

  private static final int TENSOR_MAP_ALIGNMENT = 64;
  private static final int MOST_YZ = 65535;

  private final CudaContext context;
  private final CudaKernel kernel;
  private final long handle;
  private final MemorySegment config;
  private final MemorySegment pointers;
  private final MemorySegment values;
  private final long[] offsets;
  private final long[] sizes;
  private final int clusterBlocks;

  PreparedLaunch(CudaKernel kernel, long handle, LaunchShape shape, Arena arena) {
    this.context = kernel.context();
    this.kernel = kernel;
    this.handle = handle;
    this.clusterBlocks = shape.clusterBlocks();
    int count = kernel.parameters().size();
    this.offsets = new long[count];
    this.sizes = new long[count];
    long end = 0;
    for (int i = 0; i < count; i++) {
      // Where a value lies on the host is free; the driver wants a tensor map on 64 bytes.
      sizes[i] = kernel.parameters().get(i).bytes();
      offsets[i] = aligned(end, sizes[i] == TensorMap.BYTES ? TENSOR_MAP_ALIGNMENT : Long.BYTES);
      end = offsets[i] + sizes[i];
    }
    this.values = arena.allocate(Math.max(end, 1), TENSOR_MAP_ALIGNMENT);
    this.pointers = arena.allocate(ValueLayout.JAVA_LONG, Math.max(count, 1));
    for (int i = 0; i < count; i++) {
      pointers.setAtIndex(ValueLayout.JAVA_LONG, i, values.address() + offsets[i]);
    }
    this.config = config(shape, arena);
  }

  private static long aligned(long offset, long alignment) {
    return Math.ceilDiv(offset, alignment) * alignment;
  }

  private static MemorySegment config(LaunchShape shape, Arena arena) {
    MemorySegment config = arena.allocate(CONFIG_BYTES, Long.BYTES);
    MemorySegment attributes = arena.allocate((long) MOST_ATTRIBUTES * ATTRIBUTE_BYTES, Long.BYTES);
    int used = 0;
    if (shape.cooperative()) {
      attribute(attributes, used++, COOPERATIVE, 1);
    }
    if (shape.clusterBlocks() > 1) {
      long at = (long) used * ATTRIBUTE_BYTES + 8;
      attribute(attributes, used++, CLUSTER, shape.clusterBlocks());
      attributes.set(ValueLayout.JAVA_INT, at + 4, 1);
      attributes.set(ValueLayout.JAVA_INT, at + 8, 1);
      attribute(attributes, used++, CLUSTER_SCHEDULING, SPREAD);
    }
    if (shape.overlapping()) {
      attribute(attributes, used++, PROGRAMMATIC_SERIALIZATION, 1);
    }
    config.set(ValueLayout.JAVA_INT, BLOCK_X, shape.threads());
    config.set(ValueLayout.JAVA_INT, BLOCK_Y, 1);
    config.set(ValueLayout.JAVA_INT, BLOCK_Z, 1);
    config.set(ValueLayout.JAVA_INT, SHARED, shape.sharedBytes());
    config.set(ValueLayout.JAVA_LONG, ATTRIBUTES, used == 0 ? 0 : attributes.address());
    config.set(ValueLayout.JAVA_INT, ATTRIBUTE_COUNT, used);
    return config;
  }

  private static void attribute(MemorySegment attributes, int index, int id, int value) {
    long at = (long) index * ATTRIBUTE_BYTES;
    attributes.set(ValueLayout.JAVA_INT, at, id);
    attributes.set(ValueLayout.JAVA_INT, at + 8, value);
  }

  public CudaKernel kernel() {
    return kernel;
  }

  /** Sets a parameter of four bytes. */
  public void setInt(int index, int value) {
    requireSize(index, Integer.BYTES);
    values.set(ValueLayout.JAVA_INT, offsets[index], value);
  }

  /** Sets a parameter of four bytes. */
  public void setFloat(int index, float value) {
    requireSize(index, Float.BYTES);
    values.set(ValueLayout.JAVA_FLOAT, offsets[index], value);
  }

  /** Sets a parameter of eight bytes: a device address or a number. */
  public void setLong(int index, long value) {
    requireSize(index, Long.BYTES);
    values.set(ValueLayout.JAVA_LONG, offsets[index], value);
  }

  /** Sets a parameter of one byte, such as a truth value. */
  public void setByte(int index, byte value) {
    requireSize(index, Byte.BYTES);
    values.set(ValueLayout.JAVA_BYTE, offsets[index], value);
  }

  /** Sets a parameter that is a tensor map. */
  public void setTensorMap(int index, TensorMap map) {
    requireSize(index, TensorMap.BYTES);
    MemorySegment.copy(map.block(), 0, values, offsets[index], TensorMap.BYTES);
  }

  /**
   * Launches the kernel with the values set last, or records it where the stream captures.
   *
   * @param x blocks along x; a multiple of the cluster's
   * @throws BifocalException {@code INVALID_PARAMETER} for a grid that no device takes, {@code
   *     CLOSED}, {@code DEVICE_LOST}, {@code NATIVE_FAILED}
   */
  public void launch(CudaStream stream, int x, int y, int z) {
    stream.requireOpen("cuLaunchKernelEx");
    if (kernel.library().closed()) {
      throw BifocalException.of(
          ErrorCode.CLOSED, "the kernels of " + kernel.library().name() + " were unloaded");
    }
    if (x < 1 || y < 1 || z < 1 || y > MOST_YZ || z > MOST_YZ || x % clusterBlocks != 0) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "grid of " + kernel.symbol(),
          x + " x " + y + " x " + z,
          "at least 1, at most " + MOST_YZ + " along y and z, whole clusters");
    }
    config.set(ValueLayout.JAVA_INT, GRID_X, x);
    config.set(ValueLayout.JAVA_INT, GRID_Y, y);
    config.set(ValueLayout.JAVA_INT, GRID_Z, z);
    config.set(ValueLayout.JAVA_LONG, STREAM, stream.handle());
    int code = context.driver().launchKernel(config, handle, pointers, 0);
    if (code != 0) {
      throw context.failure("cuLaunchKernelEx of " + kernel.symbol(), code);
    }
  }

  private void requireSize(int index, int bytes) {
    if (index < 0 || index >= sizes.length || sizes[index] != bytes) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "parameter " + index + " of " + kernel.symbol(),
          bytes + " bytes",
          index < 0 || index >= sizes.length
              ? "0.." + (sizes.length - 1)
              : sizes[index] + " bytes");
    }
  }
}
