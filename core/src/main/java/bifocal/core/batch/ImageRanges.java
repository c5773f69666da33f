package bifocal.core.batch;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.util.Arrays;

/**
 * The images of a batch: for each request, ranges of absolute positions, inclusive at both ends, in
 * ascending order of their first position.
 */
public final class ImageRanges {
  /** No request has an image. */
  public static final ImageRanges NONE = new ImageRanges(new int[0], new int[0]);

  private final int[] offsets;
  private final int[] bounds;

  private ImageRanges(int[] offsets, int[] bounds) {
    this.offsets = offsets;
    this.bounds = bounds;
  }

  /**
   * Ranges by request, in any order.
   *
   * @param byRequest for each request first and last position of each image, one after the other
   * @param live requests to read; what lies beyond is never looked at
   * @throws BifocalException {@code MALFORMED_INPUT} for half a range, {@code SHAPE_MISMATCH} for
   *     fewer entries than live requests, {@code NEGATIVE}
   */
  public static ImageRanges of(int[][] byRequest, int live) {
    if (live < 0 || byRequest.length < live) {
      throw BifocalException.of(
          live < 0 ? ErrorCode.NEGATIVE : ErrorCode.SHAPE_MISMATCH,
          "image bounds of " + live + " live requests",
          byRequest.length,
          "one entry for each");
    }
    int[] offsets = new int[live + 1];
    for (int request = 0; request < live; request++) {
      if (byRequest[request].length % 2 != 0) {
        throw BifocalException.of(
            ErrorCode.MALFORMED_INPUT,
            "image bounds of request " + request,
            byRequest[request].length + " numbers",
            "pairs of first and last position");
      }
      offsets[request + 1] = offsets[request] + byRequest[request].length / 2;
    }
    int[] bounds = new int[2 * offsets[live]];
    for (int request = 0; request < live; request++) {
      System.arraycopy(
          byRequest[request], 0, bounds, 2 * offsets[request], byRequest[request].length);
      sort(bounds, offsets[request], offsets[request + 1]);
    }
    return new ImageRanges(offsets, bounds);
  }

  /** Whether no request has an image. */
  public boolean isEmpty() {
    return bounds.length == 0;
  }

  /** Number of images of a request. */
  public int count(int request) {
    return request + 1 < offsets.length ? offsets[request + 1] - offsets[request] : 0;
  }

  /** First position of a request's {@code i}-th image. */
  public int first(int request, int i) {
    return bounds[2 * (offsets[request] + i)];
  }

  /** Last position of a request's {@code i}-th image. */
  public int last(int request, int i) {
    return bounds[2 * (offsets[request] + i) + 1];
  }

  private static void sort(int[] bounds, int from, int to) {
    for (int i = from + 1; i < to; i++) {
      int first = bounds[2 * i];
      int last = bounds[2 * i + 1];
      int hole = i;
      while (hole > from && bounds[2 * (hole - 1)] > first) {
        bounds[2 * hole] = bounds[2 * (hole - 1)];
        bounds[2 * hole + 1] = bounds[2 * (hole - 1) + 1];
        hole--;
      }
      bounds[2 * hole] = first;
      bounds[2 * hole + 1] = last;
    }
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof ImageRanges that
        && Arrays.equals(offsets, that.offsets)
        && Arrays.equals(bounds, that.bounds);
  }

  @Override
  public int hashCode() {
    return 31 * Arrays.hashCode(offsets) + Arrays.hashCode(bounds);
  }
}
