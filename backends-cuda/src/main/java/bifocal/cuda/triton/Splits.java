package bifocal.cuda.triton;

/**
 * How many programs share the keys of one decode tile: as many as fit on the device at a time, as
 * long as each has keys enough to be worth the merge. It depends on sizes of the batch and of its
 * block table alone, not on the lengths in it, so that a captured launch serves other lengths.
 *
 * @param multiprocessors of the device
 * @param resident programs of the decode kernel that a multiprocessor has room for
 */
record Splits(int multiprocessors, int resident) {
  /** Most programs of one tile. */
  static final int MOST = 64;

  /** More programs of a multiprocessor are not counted on. */
  private static final int MOST_RESIDENT = 4;

  /** Programs of a multiprocessor that are worth having for few keys. */
  private static final int WORTH_FEW_KEYS = 2;

  /** Fewest keys of a program while multiprocessors have fewer than {@link #WORTH_FEW_KEYS}. */
  private static final int FEW_KEYS = 256;

  /** Fewest keys of a program when they fill the device. */
  private static final int MANY_KEYS = 512;

  /** The same where every multiprocessor has a program anyway. */
  private static final int MOST_KEYS = 1024;

  /** The decode kernel of a device. */
  static Splits of(TritonDevice device, LoadedKernel decode) {
    return new Splits(
        device.multiprocessors(), Math.clamp(decode.residentPrograms(), 1, MOST_RESIDENT));
  }

  /**
   * Programs of a tile.
   *
   * @param programs tiles times KV heads
   * @param longest keys that a row of the block table has room for
   * @param together keys that a program takes in one step
   * @param room most splits whose partial results the workspace holds
   */
  int of(long programs, long longest, int together, long room) {
    if (programs == 0) {
      return 1;
    }
    long most = Math.max(1, Math.min(wanted(programs, longest), Math.min(room, MOST)));
    // Each takes equally many whole steps, so the last of them might have none.
    long steps = Math.max(1, Math.ceilDiv(longest, together));
    return (int) Math.ceilDiv(steps, Math.ceilDiv(steps, most));
  }

  private long wanted(long programs, long longest) {
    long full = (long) resident * multiprocessors / programs;
    if (programs >= multiprocessors) {
      return Math.min(full, longest / MOST_KEYS);
    }
    long few = (long) Math.min(resident, WORTH_FEW_KEYS) * multiprocessors / programs;
    return Math.max(
        Math.min(few, Math.ceilDiv(longest, FEW_KEYS)), Math.min(full, longest / MANY_KEYS));
  }

  /** Most partial results, each of one query head of one q row, that a compact batch leaves. */
  static long partials(int multiprocessors, int tileRows) {
    return (long) MOST_RESIDENT * multiprocessors * tileRows;
  }
}
