package bifocal.cpu.kernel;

import static bifocal.cpu.raw.RawMemory.readInt;
import static bifocal.cpu.raw.RawMemory.readLong;
import static bifocal.cpu.raw.RawMemory.writeInt;
import static bifocal.cpu.raw.RawMemory.writeLong;

/**
 * Joins the partial results of work items that share their queries; {@code bifocal_cpu_merge_item}
 * of the C interface.
 */
public final class MergeItem {
  /** Size of an item. */
  public static final long BYTES = 24;

  private static final long PARTIAL_ROW = 0;
  private static final long KV_HEAD = 8;
  private static final long QUERY_FIRST = 12;
  private static final long QUERY_COUNT = 16;
  private static final long SPLITS = 20;

  private MergeItem() {}

  /** Writes an item. */
  public static void write(
      long at, long partialRow, int kvHead, int queryFirst, int queryCount, int splits) {
    writeLong(at + PARTIAL_ROW, partialRow);
    writeInt(at + KV_HEAD, kvHead);
    writeInt(at + QUERY_FIRST, queryFirst);
    writeInt(at + QUERY_COUNT, queryCount);
    writeInt(at + SPLITS, splits);
  }

  static long partialRow(long at) {
    return readLong(at + PARTIAL_ROW);
  }

  static int kvHead(long at) {
    return readInt(at + KV_HEAD);
  }

  static int queryFirst(long at) {
    return readInt(at + QUERY_FIRST);
  }

  static int queryCount(long at) {
    return readInt(at + QUERY_COUNT);
  }

  static int splits(long at) {
    return readInt(at + SPLITS);
  }
}
