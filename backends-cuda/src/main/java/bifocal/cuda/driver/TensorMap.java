package bifocal.cuda.driver;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * A tiled description of a tensor for the device's copy engine. It holds an address: whoever frees
 * the tensor throws the map away.
 */
public final class TensorMap {
  /** Size of a map. */
  public static final int BYTES = 128;

  private static final int ALIGNMENT = 64;
  private static final int INTERLEAVE_NONE = 0;
  private static final int PROMOTE_TO_256_BYTES = 3;
  private static final int MOST_DIMENSIONS = 5;

  private final MemorySegment block;

  private TensorMap(MemorySegment block) {
    this.block = block;
  }

  /** Element types; the numbers are those of {@code CUtensorMapDataType}. */
  public enum Element {
    UINT8(0),
    UINT16(1),
    UINT32(2),
    INT32(3),
    UINT64(4),
    INT64(5),
    FLOAT16(6),
    FLOAT32(7),
    FLOAT64(8),
    BFLOAT16(9);

    private final int number;

    Element(int number) {
      this.number = number;
    }
  }

  /**
   * How rows are spread over shared memory; the numbers are those of {@code CUtensorMapSwizzle}.
   */
  public enum Swizzle {
    NONE(0),
    BYTES_32(1),
    BYTES_64(2),
    BYTES_128(3);

    private final int number;

    Swizzle(int number) {
      this.number = number;
    }
  }

  /**
   * A tensor and the box that one copy moves; the innermost dimension comes first.
   *
   * @param element type
   * @param address device address, a multiple of 16
   * @param sizes elements of each dimension
   * @param strides bytes from one to the next, of every dimension but the innermost; multiples of
   *     16
   * @param box elements of each dimension that one copy moves, at most 256
   * @param swizzle placement in shared memory
   * @param nanOutside whether elements outside the tensor read as NaN instead of zero
   */
  public record Description(
      Element element,
      long address,
      long[] sizes,
      long[] strides,
      int[] box,
      Swizzle swizzle,
      boolean nanOutside) {
    public Description {
      int rank = sizes.length;
      if (rank < 1 || rank > MOST_DIMENSIONS || strides.length != rank - 1 || box.length != rank) {
        throw BifocalException.of(
            ErrorCode.SHAPE_MISMATCH,
            "tensor map",
            rank + " sizes, " + strides.length + " strides, " + box.length + " box sizes",
            "1..5 sizes, one stride fewer, as many box sizes");
      }
    }
  }

  /** Memory for a map, which {@link #encode} fills. */
  public static TensorMap allocate(Arena arena) {
    return new TensorMap(arena.allocate(BYTES, ALIGNMENT));
  }

  /**
   * Fills the map.
   *
   * @throws BifocalException {@code NATIVE_FAILED} when the driver refuses the description
   */
  public void encode(CudaContext context, Description tensor) {
    context.requireUsable("cuTensorMapEncodeTiled");
    try (Arena arena = Arena.ofConfined()) {
      int rank = tensor.sizes().length;
      int[] ones = new int[rank];
      Arrays.fill(ones, 1);
      context.check(
          "cuTensorMapEncodeTiled",
          context
              .driver()
              .tensorMapEncodeTiled(
                  block,
                  tensor.element().number,
                  rank,
                  tensor.address(),
                  arena.allocateFrom(ValueLayout.JAVA_LONG, tensor.sizes()),
                  arena.allocateFrom(
                      ValueLayout.JAVA_LONG, rank == 1 ? new long[1] : tensor.strides()),
                  arena.allocateFrom(ValueLayout.JAVA_INT, tensor.box()),
                  arena.allocateFrom(ValueLayout.JAVA_INT, ones),
                  INTERLEAVE_NONE,
                  tensor.swizzle().number,
                  PROMOTE_TO_256_BYTES,
                  tensor.nanOutside() ? 1 : 0));
    }
  }

  MemorySegment block() {
    return block;
  }
}
