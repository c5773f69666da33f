package bifocal.cpu.kernel;

import bifocal.core.backend.HeadSizes;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * The ways through the kernels by head size, widest first. Validation and the kernels walk this
 * same table, so a size that passes the one is served by the other.
 */
public enum HeadPath {
  /** Rows of values are whole vectors: read where they lie. */
  WIDE(16),
  /** Any even size: rows of values are copied and padded to whole vectors. */
  PADDED(2);

  private static final int LARGEST = 1024;

  private final int base;

  HeadPath(int base) {
    this.base = base;
  }

  /** The way of a layer, absent when none serves it. */
  public static Option<HeadPath> of(int headSize, int headSizeV) {
    return Vector.of(values()).find(path -> path.takes(headSize) && path.takes(headSizeV));
  }

  /** Every size that some way serves. */
  public static HeadSizes headSizes() {
    return Vector.of(values())
        .map(path -> HeadSizes.multiplesOf(path.base, path.base, LARGEST))
        .fold(HeadSizes.NONE, HeadSizes::union);
  }

  /** Whether a head size can go this way. */
  boolean takes(int size) {
    return size % base == 0 && size >= base && size <= LARGEST;
  }
}
