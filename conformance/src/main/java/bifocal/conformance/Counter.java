package bifocal.conformance;

/** Counter-based random numbers: the same counter gives the same number, in any order. */
final class Counter {
  private Counter() {}

  /** Spreads a counter over 64 bits. */
  static long mix(long counter) {
    long z = counter + 0x9E3779B97F4A7C15L;
    z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    return z ^ (z >>> 31);
  }

  /** The sum of three uniform numbers, which has mean 0, variance 1 and lies within -3 to 3. */
  static float unitVariance(long bits) {
    int mask = (1 << 21) - 1;
    long sum = (bits & mask) + ((bits >>> 21) & mask) + ((bits >>> 42) & mask);
    return (float) (sum * 2.0 / mask - 3);
  }
}
