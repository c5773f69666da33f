package bifocal.cuda.flashinfer;

import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.flashinfer.ModuleKey.Engine;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Tells a plan where the rows of its runs really begin. A plan places the rows of one run behind
 * those of the run before; its list of first rows is written anew in pinned memory and copied
 * behind the plan's own copy.
 */
final class RowPatch {
  /** Where a plan of FA2 says that its list of first rows, one an entry, begins in bytes. */
  private static final int FA2_ROWS = 8;

  /** Where a plan of FA3 says that its lists of first rows and of their ends begin, one a tile. */
  private static final int FA3_ROWS = 1;

  private static final int FA3_AFTER_ROWS = 2;

  /** Where a plan of FA3 says that its list of entries, one a tile, begins. */
  private static final int FA3_ENTRIES = 7;

  private RowPatch() {}

  /**
   * Corrects a plan, where rows have gaps.
   *
   * @param plan what the module returned
   * @param pinned the plan in pinned memory
   * @param ints the plan on the device
   */
  static void apply(
      LaunchDraft draft, long[] plan, CudaStream stream, MemorySegment pinned, MemorySegment ints) {
    if (draft.runs().rowsTogether() || !(draft.key() instanceof ModuleKey.Prefill prefill)) {
      return;
    }
    long at;
    long bytes;
    if (prefill.engine() == Engine.FA2) {
      at = plan[FA2_ROWS];
      bytes = (draft.entries() + 1L) * Integer.BYTES;
      for (int entry = 0; entry <= draft.entries(); entry++) {
        pinned.set(ValueLayout.JAVA_INT, at + 4L * entry, draft.rowOfEntry(entry));
      }
    } else {
      at = plan[FA3_ROWS];
      bytes = plan[FA3_AFTER_ROWS] - at;
      for (long tile = 0; tile < bytes; tile += Integer.BYTES) {
        int entry = pinned.get(ValueLayout.JAVA_INT, plan[FA3_ENTRIES] + tile);
        // Behind the last tile lies what an earlier plan left.
        if (entry >= 0 && entry < draft.entries()) {
          pinned.set(ValueLayout.JAVA_INT, at + tile, draft.rowOfEntry(entry));
        }
      }
    }
    stream.copyToDevice(pinned, at, ints, at, bytes);
  }
}
