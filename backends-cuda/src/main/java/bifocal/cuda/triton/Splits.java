package bifocal.cuda.triton;

/**
 * How many programs share the keys of one decode tile. It depends on sizes of the batch and of its
 * block table alone, not on the lengths in it, so that a captured launch serves other lengths.
 */
final class Splits {
  /** Most programs of one tile. */
  static final int MOST = 64;

  /** Fewest keys worth a program of their own. */
  private static final int LEAST_KEYS = 256;

  /** Programs wanted for each multiprocessor when keys are divided. */
  private static final int PROGRAMS_PER_MULTIPROCESSOR = 2;

  private Splits() {}

  /**
   * Programs of a tile.
   *
   * @param programs tiles times KV heads
   * @param multiprocessors of the device
   * @param widens whether cached numbers are narrower than the model's: widening them keeps a
   *     program busy, so a multiprocessor wants two
   * @param longest keys that a row of the block table has room for
   * @param together keys that a program takes in one step
   * @param room most splits whose partial results the workspace holds
   */
  static int of(
      long programs, int multiprocessors, boolean widens, long longest, int together, long room) {
    if (programs == 0) {
      return 1;
    }
    long worthwhile = Math.min(Math.ceilDiv(longest, LEAST_KEYS), Math.min(room, MOST));
    long most = Math.max(1, Math.min(wanted(programs, multiprocessors, widens), worthwhile));
    // Each takes equally many whole steps, so the last of them might have none.
    long steps = Math.max(1, Math.ceilDiv(longest, together));
    return (int) Math.ceilDiv(steps, Math.ceilDiv(steps, most));
  }

  private static long wanted(long programs, long multiprocessors, boolean widens) {
    if (10 * programs < 9 * multiprocessors) {
      return PROGRAMS_PER_MULTIPROCESSOR * multiprocessors / programs;
    }
    return widens ? PROGRAMS_PER_MULTIPROCESSOR * multiprocessors / programs : 1;
  }

  /** Most partial results, each of one query head of one q row, that a compact batch leaves. */
  static long partials(int multiprocessors, int tileRows) {
    return (long) PROGRAMS_PER_MULTIPROCESSOR * multiprocessors * tileRows;
  }
}
