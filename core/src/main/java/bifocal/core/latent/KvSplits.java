package bifocal.core.latent;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;

/** Into how many parts a split-KV decode cuts the keys of each sequence. */
public final class KvSplits {
  /** Where results may not depend on the batch, keys are never cut. */
  public static final int BATCH_INVARIANT = 1;

  private static final int TOKENS_OF_A_SPLIT = 512;
  private static final int SPLITS_OF_A_UNIT = 2;

  private KvSplits() {}

  /**
   * Parts of the keys of each sequence of a batch: as many as the longest has whole runs of 512
   * keys, rounded up to a power of two, and at most two for each unit.
   *
   * @param longest keys of the longest sequence, in tokens; 0 when there is none
   * @param units multiprocessors of the device, or threads of the host
   * @throws BifocalException {@code INVALID_PARAMETER} for a negative length or no unit
   */
  public static int ofWholeRuns(int longest, int units) {
    return of(longest, Math.floorDiv(longest, TOKENS_OF_A_SPLIT), units);
  }

  /**
   * The same with a run that the longest sequence has only begun.
   *
   * @param longest keys of the longest sequence, in tokens; 0 when there is none
   * @param units multiprocessors of the device, or threads of the host
   * @throws BifocalException {@code INVALID_PARAMETER} for a negative length or no unit
   */
  public static int ofBegunRuns(int longest, int units) {
    return of(longest, Math.ceilDiv(longest, TOKENS_OF_A_SPLIT), units);
  }

  private static int of(int longest, int runs, int units) {
    if (longest < 0 || units < 1) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "keys and units",
          longest + " and " + units,
          "at least 0 keys and 1 unit");
    }
    return (int) Math.min(nextPowerOfTwo(Math.max(1, runs)), (long) units * SPLITS_OF_A_UNIT);
  }

  private static long nextPowerOfTwo(int number) {
    long floor = Integer.highestOneBit(number);
    return floor == number ? floor : floor * 2;
  }
}
