package bifocal.conformance;

import java.util.stream.LongStream;

/**
 * The seeds of a run: a fixed list, or the one that {@code -Dbifocal.seed} names. {@code
 * -Dbifocal.conformance.scale} multiplies the length of the list. Every failure names its seed.
 */
final class Seeds {
  private static final String SEED = "bifocal.seed";
  private static final String SCALE = "bifocal.conformance.scale";

  private Seeds() {}

  /** The seed of tests that need only one. */
  static long first() {
    return Long.getLong(SEED, 1L);
  }

  /** So many seeds, multiplied by the scale. */
  static long[] several(int count) {
    if (System.getProperty(SEED) != null) {
      return new long[] {first()};
    }
    return LongStream.rangeClosed(1, (long) count * Math.max(1, Integer.getInteger(SCALE, 1)))
        .toArray();
  }
}
