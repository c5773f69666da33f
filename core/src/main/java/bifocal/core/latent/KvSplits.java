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
  public static int of(int longest, int units) {
    if (longest < 0 || units < 1) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "keys and units",
          longest + " and " + units,
          "at least 0 keys and 1 unit");
    }
    long parts = nextPowerOfTwo(Math.max(1, longest / TOKENS_OF_A_SPLIT));
    return (int) Math.min(parts, (long) units * SPLITS_OF_A_UNIT);
  }

  private static long nextPowerOfTwo(int number) {
    long floor = Integer.highestOneBit(number);
    return floor == number ? floor : floor * 2;
  }
}
