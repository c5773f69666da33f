package bifocal.benchmarks.cpu;

/**
 * Storing keys and values of 2048 tokens in the cache, one thread.
 *
 * @param dtype of the tokens and of the cache
 * @param microseconds the median
 * @param copyMicroseconds median of copying the same bytes
 * @param ratio the first over the second
 */
record WriteRow(
    String work, String dtype, double microseconds, double copyMicroseconds, double ratio) {
  static final String NAME = "write 2048, head size 128";
}
