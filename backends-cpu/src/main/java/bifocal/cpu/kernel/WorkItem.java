package bifocal.cpu.kernel;

import static bifocal.cpu.raw.RawMemory.readInt;
import static bifocal.cpu.raw.RawMemory.readLong;
import static bifocal.cpu.raw.RawMemory.writeInt;
import static bifocal.cpu.raw.RawMemory.writeLong;

/**
 * One piece of attention work in native memory; {@code bifocal_cpu_item} of the C interface:
 * consecutive query tokens of one request, all query heads of one KV head, all or some of the keys.
 *
 * <p>The query at position {@code p} sees key {@code k} if it exists, {@code k >= p - leftWindow}
 * and {@code k <= p + rightWindow}, where -1 is unlimited; intervals per query token, where there
 * are any, replace the windows.
 */
public final class WorkItem {
  /** Size of an item. */
  public static final long BYTES = 48;

  /** Partial row of an item that sees all its keys and writes the result itself. */
  public static final long WHOLE = -1;

  private static final long REQUEST = 0;
  private static final long KV_HEAD = 4;
  private static final long QUERY_FIRST = 8;
  private static final long QUERY_COUNT = 12;
  private static final long POSITION = 16;
  private static final long KEY_LEN = 20;
  private static final long LEFT_WINDOW = 24;
  private static final long RIGHT_WINDOW = 28;
  private static final long KEY_BEGIN = 32;
  private static final long KEY_END = 36;
  private static final long PARTIAL_ROW = 40;

  private WorkItem() {}

  /** Writes the queries of an item. */
  public static void queries(
      long at, int request, int kvHead, int queryFirst, int queryCount, int position) {
    writeInt(at + REQUEST, request);
    writeInt(at + KV_HEAD, kvHead);
    writeInt(at + QUERY_FIRST, queryFirst);
    writeInt(at + QUERY_COUNT, queryCount);
    writeInt(at + POSITION, position);
  }

  /** Writes the keys of an item. */
  public static void keys(
      long at, int keyLen, int leftWindow, int rightWindow, int begin, int end, long partialRow) {
    writeInt(at + KEY_LEN, keyLen);
    writeInt(at + LEFT_WINDOW, leftWindow);
    writeInt(at + RIGHT_WINDOW, rightWindow);
    writeInt(at + KEY_BEGIN, begin);
    writeInt(at + KEY_END, end);
    writeLong(at + PARTIAL_ROW, partialRow);
  }

  static int request(long at) {
    return readInt(at + REQUEST);
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

  static int position(long at) {
    return readInt(at + POSITION);
  }

  static int keyLen(long at) {
    return readInt(at + KEY_LEN);
  }

  static int leftWindow(long at) {
    return readInt(at + LEFT_WINDOW);
  }

  static int rightWindow(long at) {
    return readInt(at + RIGHT_WINDOW);
  }

  static int keyBegin(long at) {
    return readInt(at + KEY_BEGIN);
  }

  static int keyEnd(long at) {
    return readInt(at + KEY_END);
  }

  static long partialRow(long at) {
    return readLong(at + PARTIAL_ROW);
  }
}
